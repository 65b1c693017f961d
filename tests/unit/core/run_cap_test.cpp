// SPDX-License-Identifier: MIT
//
// Caps as the scheduler keeps them over every window, with nobody above it, on a virtual clock.
// What was promised is checked against the device's run log by arithmetic that shares nothing with
// the core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/core/contracts.h"
#include "tests/unit/core/record.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

TEST(Cap, ABackloggedVfGetsItsRateAndTheOthersTheRestByWeight) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.make_busy(vf);
    ASSERT_EQ(rig.set_contracts({{1, 4000}, {2, 2000}, {3, 1000}}, {{1, cap(200'000, 4 * kMs)}}),
              0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    const std::uint64_t from = rig.gpu.now();
    rig.gpu.run_for(20 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1, from, kEndless)), 4e9, 0.01e9)
        << "its weight would be 4 of 7";
    EXPECT_NEAR(static_cast<double>(record.service(2)) / static_cast<double>(record.service(3)),
                2.0, 0.005);
    EXPECT_LE(record.max_beyond(1, 200'000), 4.0e6 + 1000);
}

TEST(Cap, AVfAloneIsBoundedTooAndTheEngineIsNotPolledMeanwhile) {
    Rig rig;
    rig.make_busy(1);
    ASSERT_EQ(rig.set_contracts({{1, 5000}}, {{1, cap(100'000, 5 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    const std::uint64_t accesses = rig.gpu.accesses;
    rig.gpu.run_for(10 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 1e9, 0.01e9);
    EXPECT_LE(record.max_beyond(1, 100'000), 5.0e6 + 1000);
    EXPECT_LE(rig.gpu.accesses - accesses, 200u * 40u) << "about one slice each 50 ms";
}

TEST(Cap, AVfThatRestsInTheEngineWithoutWorkUsesNoTokens) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.vf(1).work_ns = kMs;
    ASSERT_EQ(rig.set_contracts({{1, 5000}}, {{1, cap(100'000, 5 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    for (int i = 0; i < 100; ++i) {
        rig.gpu.give_work(1, 4 * kMs);
        rig.gpu.run_for(50 * kMs);
        EXPECT_EQ(rig.gpu.vf(1).work_ns, 0u) << "4 of 50 ms are within a tenth, round " << i;
    }
    EXPECT_LE(record.max_beyond(1, 100'000), 5.0e6 + 1000);
}

/// Its weight makes it the next by its share, but what it just used of its bucket is not logged
/// yet.
TEST(Cap, AVfThatIsCutForAnotherDoesNotGoOnWithTokensThatItUsed) {
    Rig rig;
    rig.make_busy(1);
    ASSERT_EQ(rig.set_contracts({{1, 9000}, {2, 1000}}, {{1, cap(100'000, 5 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        rig.gpu.run_for(random() % (10 * kMs));
        rig.gpu.give_work(2, random() % (2 * kMs));
    }
    EXPECT_LE(record.max_beyond(1, 100'000), 5.0e6 + 1000);
}

TEST(Cap, TakesEffectOnAVfThatRunsAloneAndEndsWhenItIsTakenOff) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.set_contracts({{1, 2000}}, {{1, cap(300'000, 2 * kMs)}}), 0);
    rig.gpu.run_for(10 * kMs);
    Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 1.2e9, 0.02e9);
    ASSERT_EQ(rig.set_table({{1, 2000}}), 0);
    rig.gpu.run_for(10 * kMs);
    const std::uint64_t before = rig.get_vf(1).switches;
    rig.gpu.run_for(4 * kSecond);
    EXPECT_EQ(rig.get_vf(1).switches, before) << "it has the engine for itself again";
    EXPECT_GT(rig.get_vf(1).service_ns, 4 * kSecond);
}

TEST(Cap, ATableThatEndsItIsTakenAtOnceByAVfThatWouldWaitForLong) {
    Rig rig;
    rig.make_busy(1);
    ASSERT_EQ(rig.set_contracts({{1, 5000}}, {{1, cap(100, 5 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_FALSE(rig.gpu.is_running()) << "its next slice is due in 50 s";
    ASSERT_EQ(rig.set_table({{1, 5000}}), 0);
    rig.gpu.run_for(kMs);
    EXPECT_TRUE(rig.gpu.is_running());
    EXPECT_EQ(rig.get_info().table_generation, 2u);
}

TEST(Cap, AChangedRateHoldsFromItsTableOn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(400'000, 2 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(50'000, 2 * kMs)}}), 0);
    rig.gpu.run_for(10 * kMs);
    Record record(rig);
    rig.gpu.run_for(8 * kSecond);
    EXPECT_NEAR(static_cast<double>(record.service(1)), 0.4e9, 0.01e9);
    EXPECT_LE(record.max_beyond(1, 50'000), 2.0e6 + 1000);
}

TEST(Cap, ATableWithTheSameCapDoesNotFillTheBucket) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(100'000, 10 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(100'000, 10 * kMs)}}), 0);
        rig.gpu.run_for(10 * kMs);
    }
    EXPECT_NEAR(record.share(1), 0.1, 0.005);
    EXPECT_LE(record.max_beyond(1, 100'000), 10.0e6 + 1000);
}

TEST(Cap, AGuestCannotFillItsBucketByAReset) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(50'000, 20 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    for (int i = 0; i < 20; ++i) {
        rig.gpu.guest_resets_function(1);
        rig.gpu.run_for(10 * kMs);
        rig.load_driver(1);
        rig.gpu.give_work(1, kEndless);
        rig.gpu.run_for(40 * kMs);
    }
    EXPECT_LE(record.max_beyond(1, 50'000), 20.0e6 + 1000);
}

TEST(Cap, HoldsAcrossTheDeathOfTheCore) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(100'000, 10 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    rig.gpu.run_for(kSecond);
    rig.restart_core();
    vgpu_pf_run_table table{};
    ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.contracts[0].rate_ppm, 100'000u);
    EXPECT_EQ(table.contracts[0].burst_ns, 10 * kMs);
    EXPECT_EQ(table.contracts[1].rate_ppm, 0u);
    rig.gpu.run_for(2 * kSecond);
    // what was in the engine when the core died ran on until the new one looked
    EXPECT_LE(record.max_beyond(1, 100'000), 10.0e6 + 3e6);
    EXPECT_NEAR(record.share(1), 0.1, 0.01);
}

TEST(Cap, WhoHasNoTokensIsSaidAndNotCountedAsWaiting) {
    Rig rig({}, [](vgpu_pf_params& params) { params.max_gap_ms = 20; });
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_contracts({{1, 2000}, {2, 2000}}, {{1, cap(20'000, 4 * kMs)}}), 0);
    rig.gpu.run_for(kSecond);
    Record record(rig);
    rig.gpu.run_for(4 * kSecond);
    const auto idles = rig.events(VGPU_PF_EVENT_IDLE, 1);
    const auto wakes = rig.events(VGPU_PF_EVENT_WAKE, 1);
    ASSERT_GE(idles.size(), 30u);
    EXPECT_EQ(idles.back().arg, static_cast<std::uint64_t>(VGPU_PF_IDLE_THROTTLED));
    EXPECT_NEAR(static_cast<double>(idles.size()), static_cast<double>(wakes.size()), 2.0);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(1).throttled_ns), 5e9 * 0.96, 0.1e9);
    for (const Interval& run : record.of(1)) EXPECT_GE(run.ns(), 1900 * kUs) << "no rescues";
}

/// Random tables, caps, work and overruns: no window ever holds more than the bucket, the rate and
/// what the last run was overrun by.
TEST(Cap, NoWindowHoldsMoreThanRateBucketAndOverrun) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        std::mt19937_64 random(seed);
        const auto rng = [&](std::uint64_t min, std::uint64_t max) {
            return std::uniform_int_distribution<std::uint64_t>(min, max)(random);
        };
        ModelGpu::Options options;
        options.total_vfs = 6;
        Rig rig(options);
        std::vector<vgpu_pf_run_entry> entries;
        std::map<std::uint32_t, vgpu_pf_contract> contracts;
        for (std::uint32_t vf = 1; vf <= 6; ++vf) rig.make_busy(vf);
        for (std::uint32_t i = 0; i < rng(6, 40); ++i)
            entries.push_back({static_cast<std::uint32_t>(rng(1, 6)),
                               static_cast<std::uint32_t>(rng(100, 8000))});
        for (std::uint32_t vf = 1; vf <= rng(1, 6); ++vf)
            contracts[vf] =
                cap(static_cast<std::uint32_t>(rng(5'000, 600'000)), rng(200 * kUs, 30 * kMs));
        constexpr std::uint64_t kWorst = 700 * kUs;
        rig.gpu.overrun = [&](std::uint32_t) { return rng(0, 4) == 0 ? rng(0, kWorst) : 0; };
        ASSERT_EQ(rig.set_contracts(entries, contracts), 0) << rig.message();
        rig.gpu.run_for(50 * kMs);
        Record record(rig);
        rig.live_at_random(6, 400, rng);
        for (const auto& [vf, contract] : contracts)
            EXPECT_LE(record.max_beyond(vf, contract.rate_ppm),
                      static_cast<double>(contract.burst_ns + kWorst) + 1000)
                << "VF" << vf << " seed " << seed;
    }
}

/// The engine never idles while a VF without a cap has work.
TEST(Cap, NobodyElseIsHeldUp) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) rig.make_busy(vf);
    ASSERT_EQ(
        rig.set_contracts({{1, 1000}, {2, 1000}, {3, 1000}, {4, 1000}},
                          {{1, cap(10'000, kMs)}, {2, cap(30'000, kMs)}, {3, cap(50'000, kMs)}}),
        0);
    rig.gpu.run_for(100 * kMs);
    Record record(rig);
    const std::uint64_t switches = rig.gpu.total_switches();
    rig.gpu.run_for(10 * kSecond);
    const std::uint64_t spent = (rig.gpu.total_switches() - switches) * 5 * rig.gpu.step_ns;
    std::uint64_t served = 0;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) served += record.service(vf);
    EXPECT_GE(served + spent, 10 * kSecond - 2 * kMs);
    EXPECT_NEAR(record.share(4), 0.91, 0.002);
}

}  // namespace
}  // namespace vgpu::test
