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
    explicit Code(std::size_t chunks = 4, std::uint32_t hot_runs = 0)
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
        code.emplace();
        plain.emplace(nullptr);
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

TEST_F(Translate, FullCodeMemoryIsEmptiedAndFilledAgain) {
    ProgramGenerator random(7);
    const Words words = random.program(3000);
    for (u64 seed = 0; seed < 6; ++seed) compare(words, seed, 1000);
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
    EXPECT_EQ(mappings, 2);
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
