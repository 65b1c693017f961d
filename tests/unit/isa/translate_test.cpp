// SPDX-License-Identifier: MIT
//
// Translated code against the interpreter: the same programs, stopped at the same instructions,
// leave the same registers, LDS, memory and results. VGPU_TRANSLATE_PROGRAMS and
// VGPU_TRANSLATE_SEED choose how many random programs run, and which.
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/isa/translate_rig.h"

namespace vgpu::test {
namespace {

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
    EXPECT_GT(code->share.allocated(), 1u);
    translated->gpu.epoch.fetch_add(1);
    (void)translated->gpu.cache.find(translated->program, translated->gpu.port);
    EXPECT_EQ(code->share.allocated(), 0u);
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
    const auto result = softgpu::isa::run(translated->group, translated->gpu.context(300'000));
    EXPECT_EQ(result.reason, StopReason::Budget);
    EXPECT_EQ(result.retired, 300'000u);
    EXPECT_EQ(code->share.allocated(), 0u);
}

/// A block of flat loads of four words, whose translation writes more than that of any other block.
Words block_of_loads() {
    Words words;
    for (u32 k = 0; k < softgpu::isa::DecodeCache::kBlockInstructions; ++k) {
        words.push_back(0xdc5c0000);         // flat_load_dwordx4 v[first:first+3], v[0:1]
        words.push_back((2 + k % 8) << 24);  // first = 2 to 9
    }
    words.push_back(kEndpgm);
    return words;
}

/// A stop waits for one step between two questions, instead of for the block.
TEST_F(Translate, StopBetweenAnyTwoStepsOfATranslationEndsItWithoutATrace) {
    translated->load(block_of_loads(), 1);
    auto& cache = translated->gpu.cache;
    const auto block = [&] { return cache.find(translated->program, translated->gpu.port); };
    const auto translate_until = [&](u32 last, u32& questions) {
        translated->gpu.epoch.fetch_add(1);
        auto& fresh = *block();
        const auto must_stop = [&] { return questions++ == last; };
        const auto result = cache.translator()->translate(fresh, 0xf0, must_stop);
        EXPECT_EQ(fresh.head == nullptr, result != Translation::Done);
        return result;
    };
    u32 all = 0;
    ASSERT_EQ(translate_until(~0u, all), Translation::Done);
    EXPECT_EQ(all, 4 * block()->code.size());  // two bodies, each with a slow way of each load
    for (u32 last = 0; last < all; ++last) {
        u32 questions = 0;
        EXPECT_EQ(translate_until(last, questions), Translation::Stopped);
        EXPECT_EQ(questions, last + 1);
    }
    compare(block_of_loads(), 1, 1000);
}

TEST_F(Translate, BlockWhoseTranslationWasStoppedIsTranslatedAfterAsManyRunsAgain) {
    constexpr u32 hot_runs = 5;
    use_code(16, hot_runs);
    translated->load(block_of_loads(), 1);
    auto& cache = translated->gpu.cache;
    auto& block = *cache.find(translated->program, translated->gpu.port);
    std::atomic<bool> stop = true;
    for (u32 run = 0; run <= hot_runs; ++run) cache.heat(block, 0xf0, stop);
    EXPECT_EQ(block.head, nullptr);
    stop = false;
    for (u32 run = 0; run < hot_runs; ++run) cache.heat(block, 0xf0, stop);
    EXPECT_EQ(block.head, nullptr);
    cache.heat(block, 0xf0, stop);
    EXPECT_NE(block.head, nullptr);
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

template <class T>
void expect_first_nan(WaveMachine& machine, Op op, const std::array<T, 4>& kinds) {
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
    for (WaveMachine* const machine : {&*plain, &*translated}) {
        for (const Op op : {Op::v_add_f32, Op::v_sub_f32, Op::v_mul_f32, Op::v_fma_f32})
            expect_first_nan(*machine, op, kSingles);
        for (const Op op : {Op::v_add_f64, Op::v_mul_f64, Op::v_fma_f64})
            expect_first_nan(*machine, op, kDoubles);
    }
}

TEST(CodeMemory, NoMappingIsWritableAndExecutable) {
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    const EagerCode code;
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

TEST(TranslatorDeathTest, CodeOfAnotherCacheDoesNotRun) {
#ifdef NDEBUG
    GTEST_SKIP() << "assertions are off in this build";
#else
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    EagerCode code(2);
    const softgpu::isa::Translator translator(code.share);
    const auto others = code.share.take();
    softgpu::isa::Frame frame{};
    EXPECT_DEATH((void)translator.run(frame, others.run), "belongs to another cache");
    code.share.release(others);
#endif
}

TEST(CodeMemory, WithoutRoomTheInterpreterRunsEverything) {
    if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
    EagerCode code(1);
    const auto taken = code.share.take();
    ASSERT_NE(taken.write, nullptr);
    WaveMachine machine(&code.share);
    machine.load({0xbf800000, kEndpgm}, 1);  // s_nop
    EXPECT_EQ(softgpu::isa::run(machine.group, machine.gpu.context()).reason,
              StopReason::AllWavesEnded);
    code.share.release(taken);
}

}  // namespace
}  // namespace vgpu::test
