// SPDX-License-Identifier: MIT
//
// Every event of a VF's life, in every situation of the run table, with every trouble that a device
// can make: alone, in pairs, and at random. Of all combinations those are tried in which every two
// of the three meet; with VGPU_ADVERSITY_FULL all of them, and many more lives.
#include "tests/unit/core/adversity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace vgpu::test {
namespace {

bool is_full() {
    return std::getenv("VGPU_ADVERSITY_FULL") != nullptr;
}

std::string notified(const Adversity::Situation& situation, const Adversity::Trouble& trouble,
                     const std::vector<const char*>& happened) {
    std::string text = std::string(situation.name) + ", " + trouble.name;
    for (const char* event : happened) text += std::string(", ") + event;
    return text;
}

TEST(Adversity, EverySituationIsReached) {
    for (const auto& situation : Adversity::situations()) {
        Adversity world;
        EXPECT_TRUE(world.reach(situation, Adversity::troubles().front())) << situation.name;
        EXPECT_EQ(world.check(), "") << situation.name;
    }
}

TEST(Adversity, NoEventInAnySituationWithAnyTroubleLeavesAVfStuck) {
    const auto& situations = Adversity::situations();
    const auto& troubles = Adversity::troubles();
    const auto& events = Adversity::events();
    for (std::size_t s = 0; s < situations.size(); ++s)
        for (std::size_t t = 0; t < troubles.size(); ++t)
            for (std::size_t e = 0; e < events.size(); ++e) {
                if (!is_full() && s != (t + e) % situations.size()) continue;
                Adversity world;
                world.reach(situations[s], troubles[t]);
                events[e].happen(world, Adversity::kSubject);
                EXPECT_EQ(world.check(), "")
                    << notified(situations[s], troubles[t], {events[e].name});
            }
}

/// What may overtake what, while the switch to a VF or from it fails: both at once, and the second
/// while the first is under way or after it.
TEST(Adversity, NoTwoEventsAroundAFailingSwitchLeaveAVfStuck) {
    constexpr std::uint64_t kDelays[] = {0, 10 * kUs, 150 * kMs};
    constexpr std::size_t kPart = 5;
    const auto& events = Adversity::events();
    const auto named = [](const auto& rows, const std::string& name) {
        return *std::ranges::find_if(rows, [&](const auto& row) { return row.name == name; });
    };
    const struct {
        const char *situation, *trouble;
    } kSwitches[] = {{"SwitchesToIt", "NeighbourHangs"}, {"SwitchesFromIt", "ItHangs"}};
    std::size_t number = 0;
    for (const auto& failing : kSwitches)
        for (std::size_t a = 0; a < events.size(); ++a)
            for (std::size_t b = 0; b < events.size(); ++b) {
                if (!is_full() && number++ % kPart != 0) continue;
                const auto situation = named(Adversity::situations(), failing.situation);
                const auto trouble = named(Adversity::troubles(), failing.trouble);
                Adversity world;
                world.reach(situation, trouble);
                events[a].happen(world, Adversity::kSubject);
                world.rig.gpu.run_for(kDelays[(a + b) % std::size(kDelays)]);
                events[b].happen(world, Adversity::kSubject);
                EXPECT_EQ(world.check(), "")
                    << notified(situation, trouble, {events[a].name, events[b].name});
            }
}

/// One life of three tenants; its seed makes it happen again.
void live(std::uint32_t seed) {
    constexpr std::uint64_t kPauses[] = {0, 3 * kUs, kMs, 7 * kMs, 120 * kMs};
    const auto& events = Adversity::events();
    const auto& troubles = Adversity::troubles();
    std::mt19937 random(seed);
    const auto any = [&](const auto& choices) -> const auto& {
        return choices[random() % std::size(choices)];
    };
    Adversity world({.is_stepwise = seed % 2 != 0});
    world.reach(any(Adversity::situations()), troubles.front());
    std::string text = "seed " + std::to_string(seed) + ":";
    for (std::size_t steps = 20 + seed % 60; steps > 0; --steps) {
        const std::uint32_t vf = 1 + static_cast<std::uint32_t>(random() % Adversity::kVfs);
        const std::size_t what = random() % 20;
        if (what == 0) {
            const auto& trouble = any(troubles);
            text += std::string(" ") + trouble.name;
            trouble.arise(world);
        } else if (what == 1) {
            world.get_device_back();
        } else if (what < 5) {
            world.rig.gpu.give_work(vf, kEndless);
        } else {
            const auto& event = any(events);
            text += std::string(" ") + event.name + std::to_string(vf);
            event.happen(world, vf);
        }
        world.rig.gpu.run_for(any(kPauses));
        ASSERT_EQ(world.check_engine(), "") << text;
    }
    EXPECT_EQ(world.check(), "") << text;
}

TEST(Adversity, NoLifeAtRandomLeavesAVfStuck) {
    const std::uint32_t lives = is_full() ? 20'000 : 40;
    for (std::uint32_t seed = 1; seed <= lives; ++seed) live(seed);
}

}  // namespace
}  // namespace vgpu::test
