// SPDX-License-Identifier: MIT
//
// Events for administrators (schemas/events.def) that no other test expects.
#include "tests/unit/daemon/admin_event_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using testing::texts_of;
using testing::World;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(AdminEvents, WhatSysfsMayNotSetWhileVgpudManagesIsRefusedWithAWord) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.manager->take_admin_events();
    world.pf().push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_VRAM_QUOTA, 0);
    world.pf().push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_WEIGHT, 1'000'000'000'000);
    world.pass(20ms);
    EXPECT_THAT(texts_of(world, EventKind::PolicyRefused),
                ElementsAre(HasSubstr("vram_quota 0, from sysfs: VGPU-306"),
                            HasSubstr("weight 1000000000000")));
}

TEST(AdminEvents, ADeviceResetIsReportedWithItsNumber) {
    World world;
    world.pf().push(VGPU_PF_EVENT_DEVICE_RESET, 0, 2, 0);
    world.pass(20ms);
    EXPECT_THAT(texts_of(world, EventKind::DeviceReset),
                ElementsAre("the whole GPU is being reset (reset 2 since the PF driver started)"));
}

TEST(AdminEvents, EventsThatWereOverwrittenAreCounted) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().next_seq += 7;
    world.pf().push(VGPU_PF_EVENT_RESET_DONE, 1, VGPU_PF_REASON_OPERATOR, 0);
    world.pass(20ms);
    EXPECT_THAT(texts_of(world, EventKind::EventsLost), ElementsAre(HasSubstr("7 events")));
    EXPECT_EQ(world.gpu().view().events_lost, 7u);
}

TEST(AdminEvents, AnotherVfUnderTheNumberOfADefinedOneIsReported) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().vfs.at(1).uuid[0] ^= 1;
    world.start();
    EXPECT_THAT(texts_of(world, EventKind::Replaced),
                ElementsAre(HasSubstr("'a' is defined here")));
}

TEST(AdminEvents, AResizeThatThePfCoreRefusesIsReportedAndLeavesTheFormerResources) {
    constexpr std::uint64_t kBefore = 64 * FakePf::kMiB, kWanted = 128 * FakePf::kMiB;
    World world;
    ASSERT_TRUE(world.create({{"vram_bytes", kBefore}}));
    world.pf().refuses_resources = [](const vgpu_pf_provision& one) {
        return one.vram_bytes == kWanted;
    };
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = kWanted}, Force::Yes));
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_THAT(texts_of(world, EventKind::NotResized),
                ElementsAre(HasSubstr("did not get 128 MiB")));
    EXPECT_EQ(world.gpu().view(1).record.spec.resources.vram_bytes, kBefore);
}

}  // namespace
}  // namespace vgpu::daemon
