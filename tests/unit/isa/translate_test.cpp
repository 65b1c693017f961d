// SPDX-License-Identifier: MIT
//
// Translated code against the interpreter: the same programs, stopped at the same instructions,
// leave the same registers, LDS, memory and results. VGPU_TRANSLATE_PROGRAMS and
// VGPU_TRANSLATE_SEED choose how many random programs run, and which.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/isa/translate/translator.h"
#include "tests/support/isa/disassemble.h"
#include "tests/unit/isa/program_generator.h"
#include "tests/unit/isa/wave_bench.h"

namespace vgpu::test {
namespace {

using softgpu::isa::CodeMemory;
using softgpu::isa::CodeShare;
using softgpu::isa::Op;
using softgpu::isa::RunResult;
using softgpu::isa::StopReason;
using softgpu::isa::Workgroup;

constexpr std::size_t kArena = 512 * 1024;

u64 number_from(const char* variable, u64 otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Code memory that translates at the first sight of a block.
struct Code {
    explicit Code(std::size_t chunks = 16, std::uint32_t hot_runs = 0)
        : memory(CodeMemory::create(chunks)), share(**memory, chunks, hot_runs) {}
    Result<std::unique_ptr<CodeMemory>> memory;
    CodeShare share;
};

/// A machine that runs one wave; with `code`, translated.
struct Machine {
    explicit Machine(CodeShare* code) : gpu(kArena, softgpu::isa::variant(), code) {
        gpu.load_words({kEndpgm}, ProgramGenerator::kVgprs);
        gpu.set_grid({});
        gpu.spec.lds_bytes = 4608;
        program = gpu.allocate(128 * 1024);
        // Rows of words cross a page border.
        constexpr u64 page = 4096, before_border = 160;
        const u64 area = gpu.allocate(4 * page);
        data = (area + page - 1) / page * page + page - before_border;
    }
    void load(const Words& words, u64 seed) {
        softgpu::isa::start_workgroup(group, gpu.spec, {});
        const auto bytes = std::as_bytes(std::span(words));
        std::ranges::copy(bytes, gpu.port.bytes(program, bytes.size()).begin());
        gpu.epoch.fetch_add(1);
        ProgramGenerator(seed).fill(group.waves[0]);
        auto& wave = group.waves[0].state;
        wave.pc = program;
        wave.scalar[ProgramGenerator::kDataPair] = softgpu::low32(data);
        wave.scalar[ProgramGenerator::kDataPair + 1] = softgpu::high32(data);
    }
    [[nodiscard]] std::vector<std::byte> state() {
        std::vector<std::byte> out;
        softgpu::Writer writer(out);
        group.save(writer);
        const auto memory = gpu.port.bytes(data, 2 * ProgramGenerator::kDataBytes);
        out.insert(out.end(), memory.begin(), memory.end());
        return out;
    }
    FlatGpu gpu;
    Workgroup group;
    u64 program = 0, data = 0;
};

std::string text_of(const Words& words) {
    std::string out;
    for (std::size_t at = 0; at < words.size();) {
        const auto decoded = softgpu::isa::decode(std::span(words).subspan(at));
        out += softgpu::isa::disassemble(decoded) + "\n";
        at += decoded.size / 4;
    }
    return out;
}

bool is_same(const RunResult& a, const RunResult& b) {
    return a.reason == b.reason && a.retired == b.retired && a.pc == b.pc && a.lane == b.lane &&
           a.fault.kind == b.fault.kind && raw(a.fault.va) == raw(b.fault.va) && a.words == b.words;
}

class Translate : public testing::Test {
protected:
    void SetUp() override {
        if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
        plain.emplace(nullptr);
        use_code(16);
    }
    void use_code(std::size_t chunks, std::uint32_t hot_runs = 0) {
        translated.reset();
        code.emplace(chunks, hot_runs);
        translated.emplace(&code->share);
    }
    /// Runs both to the end, `budget` instructions at a time.
    void compare(const Words& words, u64 seed, u64 budget) {
        plain->load(words, seed);
        translated->load(words, seed);
        for (int steps = 0; steps < 1000; ++steps) {
            const auto want = softgpu::isa::run(plain->group, plain->gpu.context(budget));
            const auto got = softgpu::isa::run(translated->group, translated->gpu.context(budget));
            ASSERT_TRUE(is_same(want, got)) << "seed " << seed << '\n' << text_of(words);
            ASSERT_TRUE(plain->state() == translated->state())
                << "seed " << seed << ", after " << got.retired << '\n'
                << difference() << text_of(words);
            if (want.reason != StopReason::Budget) return;
        }
        FAIL() << "the program does not end, seed " << seed;
    }
    std::string difference() {
        std::string out;
        const auto& a = plain->group.waves[0];
        const auto& b = translated->group.waves[0];
        for (u32 k = 0; k < a.state.scalar.size(); ++k)
            if (a.state.scalar[k] != b.state.scalar[k]) out += "s" + std::to_string(k) + ' ';
        for (u32 row = 0; row < ProgramGenerator::kVgprs; ++row)
            for (u32 l = 0; l < softgpu::isa::kLanes; ++l)
                if (a.vgprs[row].lane[l] != b.vgprs[row].lane[l])
                    out += "v" + std::to_string(row) + '[' + std::to_string(l) + "] " +
                           std::to_string(a.vgprs[row].lane[l]) +
                           " != " + std::to_string(b.vgprs[row].lane[l]) + '\n';
        if (a.state.scc != b.state.scc) out += "scc ";
        return out + '\n';
    }
    std::optional<Code> code;
    std::optional<Machine> plain, translated;
};

TEST_F(Translate, EveryRowWithHostCodeComputesWhatItsHandlerComputes) {
    constexpr int forms = 24;
    ProgramGenerator random(1);
    for (std::size_t k = 0; k < softgpu::isa::kOpCount; ++k) {
        const Op op = static_cast<Op>(k);
        if (!softgpu::isa::has_host_code(op)) continue;
        Words words;
        for (int form = 0; form < forms; ++form)
            if (const auto one = random.instruction(op))
                words.insert(words.end(), one->begin(), one->end());
        words.push_back(kEndpgm);
        for (u64 seed = 0; seed < 4; ++seed) compare(words, seed * 1000 + k, 1u << 20);
        if (HasFatalFailure()) return;
    }
}

TEST_F(Translate, RandomProgramsStoppedAnywhereLeaveTheSameState) {
    const u64 programs = number_from("VGPU_TRANSLATE_PROGRAMS", 300);
    const u64 first = number_from("VGPU_TRANSLATE_SEED", 1);
    for (u64 seed = first; seed < first + programs; ++seed) {
        ProgramGenerator random(seed);
        const Words words = random.program(16 + seed % 200);
        compare(words, seed, 33 + seed * 7 % 400);
        if (HasFatalFailure()) return;
    }
}

TEST_F(Translate, EndlessLoopStopsWhenAskedAndCountsEveryInstruction) {
    constexpr u32 branch_to_itself = 0xbf82ffff;
    translated->load({branch_to_itself}, 1);
    const auto some = softgpu::isa::run(translated->group, translated->gpu.context(100'000));
    EXPECT_EQ(some.reason, StopReason::Budget);
    EXPECT_EQ(some.retired, 100'000u);
    const std::jthread other([&] { translated->gpu.stop = true; });
    const auto rest = softgpu::isa::run(translated->group, translated->gpu.context(~u64{0}));
    EXPECT_EQ(rest.reason, StopReason::Stopped);
}

TEST_F(Translate, ChangedCodeRunsAfterTheInvalidation) {
    constexpr u32 move_1 = 0x7e000281, move_2 = 0x7e000282;  // v_mov_b32 v0, 1 and 2
    for (const u32 word : {move_1, move_2}) {
        translated->load({word, kEndpgm}, 1);
        translated->group.waves[0].state.set_pair(softgpu::isa::ScalarReg::Exec, ~u64{0});
        translated->group.waves[0].state.mode = 0xf0;
        (void)softgpu::isa::run(translated->group, translated->gpu.context());
        EXPECT_EQ(translated->group.waves[0].vgprs[0].lane[5], word == move_1 ? 1u : 2u);
    }
}

/// One chunk holds a part of the program's code.
TEST_F(Translate, FullCodeMemoryIsEmptiedAndFilledAgain) {
    use_code(1);
    ProgramGenerator random(7);
    const Words words = random.program(3000);
    for (u64 seed = 0; seed < 6; ++seed) compare(words, seed, 1000);
}

TEST_F(Translate, InvalidatedCodeReturnsItsMemoryToTheVf) {
    ProgramGenerator random(7);
    const Words words = random.program(3000);
    compare(words, 1, 1000);
    EXPECT_GT(code->share.lent(), 1u);
    translated->gpu.epoch.fetch_add(1);
    (void)translated->gpu.cache.find(translated->program, translated->gpu.port);
    EXPECT_EQ(code->share.lent(), 0u);
}

constexpr u32 kSendInterrupt = 0xbf900001, kNop = 0xbf800000, kToStart = 0xbf820000;

/// Messages, and then as many instructions as `nops` says, in an endless loop.
Words endless(u32 nops) {
    Words words{kSendInterrupt};
    words.insert(words.end(), nops, kNop);
    words.push_back(kToStart | ((0u - (nops + 2)) & 0xffff));
    return words;
}

TEST_F(Translate, LinkedBlocksOfALoopStopWithinABlock) {
    constexpr u32 nops = 500, block = softgpu::isa::DecodeCache::kBlockInstructions;
    translated->load(endless(nops), 1);
    u32 rounds = 0;
    translated->gpu.messages.on_interrupt = [&](u32) {
        if (++rounds == 40) translated->gpu.stop = true;
    };
    const auto result = softgpu::isa::run(translated->group, translated->gpu.context(~u64{0}));
    EXPECT_EQ(result.reason, StopReason::Stopped);
    EXPECT_LE(result.retired, 39 * (nops + 2) + block);
}

/// The loop ends because its branch becomes the end of the program.
TEST_F(Translate, CodeThatIsChangedWhileItRunsLinkedRunsChangedAfterTheInvalidation) {
    constexpr u32 nops = 70;
    translated->load(endless(nops), 1);
    u32 rounds = 0;
    translated->gpu.messages.on_interrupt = [&](u32) {
        if (++rounds != 40) return;
        const auto branch = translated->gpu.port.bytes(translated->program + (nops + 1) * 4, 4);
        softgpu::store(branch, 0, kEndpgm);
        translated->gpu.epoch.fetch_add(1);
    };
    const auto result = softgpu::isa::run(translated->group, translated->gpu.context(1u << 20));
    EXPECT_EQ(result.reason, StopReason::AllWavesEnded);
    EXPECT_EQ(rounds, 40u);
}

/// A guest whose code changes all the time costs no translation: a block must first run often.
TEST_F(Translate, CodeThatIsInvalidatedAllTheTimeIsNotTranslated) {
    use_code(16, CodeShare::kHotRuns);
    translated->load(endless(70), 1);
    translated->gpu.messages.on_interrupt = [&](u32) { translated->gpu.epoch.fetch_add(1); };
    const auto result = softgpu::isa::run(translated->group, translated->gpu.context(100'000));
    EXPECT_EQ(result.reason, StopReason::Budget);
    EXPECT_EQ(result.retired, 100'000u);
    EXPECT_EQ(code->share.lent(), 0u);
}

/// An operation of floats with VOP3 operands v0, v2, v4, its result in v8.
u32 first_word(Op op) {
    const auto& row = softgpu::isa::info(op);
    const u32 base = row.encoding == softgpu::isa::Encoding::Vop2 ? enc::kVop3OfVop2 : 0;
    return enc::kVop3 | put(enc::kVop3Op, row.code + base) | put(enc::kVop3Vdst, 8);
}

/// Four kinds of values, by two bits of the lane for each source.
constexpr std::array<u32, 4> kSingles{0x3f800000, 0x7fc00001, 0xff800002, 0x7f800000};
constexpr std::array<u64, 4> kDoubles{0x3ff0000000000000, 0x7ff8000000000001, 0xfff0000000000002,
                                      0x7ff0000000000000};

template <class T> void expect_first_nan(Machine& machine, Op op, const std::array<T, 4>& kinds) {
    constexpr bool is_wide = sizeof(T) == 8;
    constexpr T quiet = is_wide ? static_cast<T>(u64{1} << 51) : static_cast<T>(1u << 22);
    const u32 sources = softgpu::isa::info(op).src[2] == softgpu::isa::Type::none ? 2 : 3;
    const u32 third = sources == 3 ? put(enc::kVop3Src2, enc::kFirstVgpr + 4) : 0;
    machine.load(
        {first_word(op),
         put(enc::kVop3Src0, enc::kFirstVgpr) | put(enc::kVop3Src1, enc::kFirstVgpr + 2) | third,
         kEndpgm},
        1);
    auto& wave = machine.group.waves[0];
    wave.state.mode = 0xf0;
    wave.state.set_pair(softgpu::isa::ScalarReg::Exec, ~u64{0});
    const auto kind = [](u32 source, u32 lane) { return (lane >> (2 * source)) & 3; };
    for (u32 source = 0; source < 3; ++source)
        for (u32 lane = 0; lane < softgpu::isa::kLanes; ++lane) {
            const T value = kinds[kind(source, lane)];
            wave.vgprs[2 * source].lane[lane] = softgpu::low32(value);
            wave.vgprs[2 * source + 1].lane[lane] = softgpu::high32(value);
        }
    (void)softgpu::isa::run(machine.group, machine.gpu.context());
    for (u32 lane = 0; lane < softgpu::isa::kLanes; ++lane)
        for (u32 source = 0; source < sources; ++source) {
            const u32 what = kind(source, lane);
            if (what != 1 && what != 2) continue;
            const u32 high = is_wide ? wave.vgprs[9].lane[lane] : 0;
            const u64 got = softgpu::join(wave.vgprs[8].lane[lane], high);
            EXPECT_EQ(got, u64{kinds[what] | quiet})
                << softgpu::isa::info(op).name << " lane " << lane;
            break;
        }
}

TEST_F(Translate, FirstOfSeveralNansIsTheResultInBothTiers) {
    for (Machine* const machine : {&*plain, &*translated}) {
        for (const Op op : {Op::v_add_f32, Op::v_sub_f32, Op::v_mul_f32, Op::v_fma_f32})
            expect_first_nan(*machine, op, kSingles);
        for (const Op op : {Op::v_add_f64, Op::v_mul_f64, Op::v_fma_f64})
            expect_first_nan(*machine, op, kDoubles);
    }
}

TEST(CodeMemory, NoMappingIsWritableAndExecutable) {
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    const Code code;
    std::ifstream maps("/proc/self/maps");
    int mappings = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("vgpu-code") == std::string::npos) continue;
        ++mappings;
        EXPECT_TRUE(line.find(" rw-s ") != std::string::npos ||
                    line.find(" r-xs ") != std::string::npos)
            << line;
    }
    EXPECT_GE(mappings, 2);  // more if this run has the translator for all tests
}

TEST(CodeMemory, VfGetsNoMoreThanItsShareAndLeavesTheRestToOthers) {
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    const auto memory = CodeMemory::create(3);
    ASSERT_TRUE(memory.has_value());
    CodeShare greedy(**memory, 2), other(**memory, 2);
    const auto first = greedy.take();
    ASSERT_NE(first.write, nullptr);
    ASSERT_NE(greedy.take().write, nullptr);
    EXPECT_EQ(greedy.take().write, nullptr);
    EXPECT_NE(other.take().write, nullptr);
    EXPECT_EQ(other.take().write, nullptr);  // no chunk is left
    greedy.release(first);
    EXPECT_NE(other.take().write, nullptr);
}

TEST(CodeMemory, WithoutRoomTheInterpreterRunsEverything) {
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    Code code(1);
    const auto taken = code.share.take();
    ASSERT_NE(taken.write, nullptr);
    Machine machine(&code.share);
    machine.load({0xbf800000, kEndpgm}, 1);  // s_nop
    EXPECT_EQ(softgpu::isa::run(machine.group, machine.gpu.context()).reason,
              StopReason::AllWavesEnded);
    code.share.release(taken);
}

}  // namespace
}  // namespace vgpu::test
