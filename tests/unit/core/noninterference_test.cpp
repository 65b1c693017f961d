// SPDX-License-Identifier: MIT
//
// What a guest learns of its neighbour from the PF core: nothing but waits, which its contract
// bounds. VF1 works all the time; the guest of VF2 does everything that a guest can do, at random:
// messages, resets, hangs, work of any length, a client that comes and goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "pf-driver/hw/regs.h"
#include "tests/unit/core/adversity.h"

namespace vgpu::test {
namespace {

constexpr std::uint32_t kTwinQuantumUs = 2'000, kTwinGapUs = 10'000, kPreemptTimeoutUs = 3'000;
/// Two switches, and a poll of the PF core.
constexpr std::uint64_t kSlack = kMs;
/// Longest wait of VF1: its gap; if VF2 hangs, also the time until its slice is over by the PF
/// core's timer, and the time in which it must leave the engine.
constexpr std::uint64_t kGapBound = kTwinGapUs * kUs + kSlack;
constexpr std::uint64_t kHangBound =
    kGapBound + 20 * kMs /* SLICE_TIMER_SLACK_NS */ + kPreemptTimeoutUs * kUs;

/// Everything that VF1 is told, or finds in its registers.
struct Sight {
    std::vector<std::uint32_t> messages;
    std::uint32_t flrs, gates;
    std::uint64_t vram_bytes, full_accesses, overruns;
    bool is_in_service;

    bool operator==(const Sight&) const = default;
};

/// A planted fault: now and then, what VF2's guest does is taken for VF1's.
enum class Leak { None, ConfusedVfs };

class Twin {
public:
    Twin(std::uint32_t seed, bool hangs, Leak leak = Leak::None)
        : random_(seed),
          hangs_(hangs),
          leak_(leak),
          world_({.vfs = 2, .quantum_us = kTwinQuantumUs, .max_gap_us = kTwinGapUs}) {
        for (std::uint32_t vf = 1; vf <= 2; ++vf)
            vgpu_pf_set_preempt_timeout(world_.rig.pf.get(), vf, kPreemptTimeoutUs);
        gpu().give_work(1, kEndless);
        left_ = gpu().now();
        gpu().on_start = [this](std::uint32_t vf) {
            if (vf == 1) longest_wait_ = std::max(longest_wait_, gpu().now() - left_);
        };
        gpu().on_run = [this](const vgpu_hw_run_log_entry& entry) {
            if (entry.vf == 1) left_ = entry.run_end_ns;
        };
    }

    Sight live(int acts) {
        for (int i = 0; i < acts; ++i) {
            act();
            gpu().run_for(random_() % (5 * kMs));
        }
        gpu().run_for(kSecond);
        const vgpu_pf_vf vf = world_.rig.get_vf(1);
        return {gpu().vf(1).received,
                gpu().vf(1).generation,
                gpu().bank(1, REG_VGPU_VF0_GATES),
                vf.vram_bytes,
                vf.full_access_count,
                vf.overruns,
                vgpu_vf_is_in_service(&world_.rig.vf(1))};
    }
    [[nodiscard]] std::uint64_t longest_wait() const { return longest_wait_; }
    [[nodiscard]] std::uint64_t neighbours_resets() { return gpu().vf(2).generation; }

private:
    ModelGpu& gpu() { return world_.rig.gpu; }
    void act() {
        constexpr std::uint32_t kGuestEvents = 9;  // the first of Adversity::events()
        const auto what = static_cast<std::uint32_t>(random_()) % (kGuestEvents + 5);
        const bool is_confused = leak_ == Leak::ConfusedVfs && random_() % 50 == 0;
        if (what < kGuestEvents)
            Adversity::events()[what].happen(world_, is_confused ? 1 : 2);
        else if (what == kGuestEvents && hangs_)
            gpu().hang(2);
        else
            gpu().give_work(2, what % 2 == 0 ? kEndless : random_() % (4 * kMs));
    }

    std::mt19937 random_;
    const bool hangs_;
    const Leak leak_;
    Adversity world_;
    std::uint64_t left_ = 0, longest_wait_ = 0;
};

void expect_alike(bool hangs, std::uint64_t bound) {
    constexpr int kActs = 400;
    constexpr std::uint32_t kPairs = 8;
    const char* text = std::getenv("VGPU_TWIN_SEED");
    const std::uint32_t seed =
        text ? static_cast<std::uint32_t>(std::stoul(text)) : std::random_device{}();
    std::cout << "VGPU_TWIN_SEED=" << seed << "\n";
    for (std::uint32_t pair = 0; pair < kPairs; ++pair) {
        Twin one(seed + 2 * pair, hangs), other(seed + 2 * pair + 1, hangs);
        EXPECT_EQ(one.live(kActs), other.live(kActs)) << "seed " << seed + 2 * pair;
        for (Twin* twin : {&one, &other}) {
            EXPECT_LE(twin->longest_wait(), bound) << "seed " << seed + 2 * pair;
            EXPECT_GT(twin->neighbours_resets(), 0u);
        }
    }
}

TEST(Noninterference, AGuestLearnsNothingOfItsNeighbourButWaitsWithinItsGap) {
    expect_alike(false, kGapBound);
}

TEST(Noninterference, AGuestLearnsNothingOfAHangingNeighbourButBoundedWaits) {
    expect_alike(true, kHangBound);
}

TEST(Noninterference, AnActOfTheNeighbourThatReachesTheGuestMakesTheTwinsDiffer) {
    constexpr int kActs = 400;
    for (std::uint32_t seed = 1; seed <= 8; seed += 2) {
        Twin one(seed, false, Leak::ConfusedVfs), other(seed + 1, false, Leak::ConfusedVfs);
        EXPECT_NE(one.live(kActs), other.live(kActs)) << "seed " << seed;
    }
}

}  // namespace
}  // namespace vgpu::test
