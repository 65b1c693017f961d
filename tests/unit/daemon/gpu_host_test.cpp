// SPDX-License-Identifier: MIT
//
// GpuHost between two threads, without any: the test takes the GPU's turns when it wants them, so
// that "vgpu-pf does not answer" is a turn that has not come.
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using ::testing::HasSubstr;
using testing::World;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""us;

/// A runner whose turns the test takes.
class TestRunner final : public GpuRunner {
public:
    void start(GpuLoop& loop) override { loop.iterate(); }
    void wake() override {}
    void stop() override {}
};

/// gpu0's turns are the test's; gpu1 answers at once.
class Hosts : public ::testing::Test {
protected:
    Hosts() {
        slow().start(std::make_unique<TestRunner>(), [this] {
            ++changes;
            if (on_change) on_change();
        });
        changes = 0;
    }
    GpuHost& slow() { return *world.manager->find_gpu("gpu0"); }

    void create(const std::string& name, const std::string& gpu) {
        world.manager->create(gpu,
                              {{"name", name}, {"vram_bytes", std::uint64_t{64 * FakePf::kMiB}}},
                              [this](Result<Target> made) { answers.push_back(std::move(made)); });
    }

    void set_weight(std::uint64_t weight) {
        world.manager->set_vf({"gpu0", 1}, {{"weight", weight}},
                              [](const Result<>& done) { EXPECT_TRUE(done); });
    }

    World world{{"gpu0", "gpu1"}};
    std::vector<Result<Target>> answers;
    int changes = 0;
    std::function<void()>
        on_change;  ///< the main loop, while the GPU's thread is still at its turn
};

TEST_F(Hosts, ARequestOfASlowGpuHoldsUpNobodyElse) {
    create("slow", "gpu0");
    create("quick", "gpu1");
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(*answers[0], (Target{"gpu1", 1}));
    EXPECT_TRUE(world.manager->resolve("quick"));
    EXPECT_EQ(slow().snapshot()->gpu.state, GpuState::Ok) << "what was known stays to be seen";
    EXPECT_TRUE(slow().snapshot()->vfs.empty());
}

TEST_F(Hosts, AnAnswerComesInTheMainLoopAfterItsTurn) {
    create("a", "gpu0");
    slow().iterate();
    EXPECT_TRUE(answers.empty()) << "not in the GPU's thread";
    EXPECT_GT(changes, 0);
    EXPECT_TRUE(slow().snapshot()->has_vf(1)) << "its effect is to be seen when it comes";
    world.manager->finish();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0]);
}

TEST_F(Hosts, ASnapshotIsNewOnceToEachWhoAsks) {
    std::uint64_t one = 0, other = 0;
    EXPECT_TRUE(slow().is_newer(one));
    EXPECT_FALSE(slow().is_newer(one));
    EXPECT_TRUE(slow().is_newer(other));
    create("vm", "gpu0");
    EXPECT_FALSE(slow().is_newer(one)) << "its turn has not come";
    slow().iterate();
    EXPECT_TRUE(slow().is_newer(one));
    EXPECT_TRUE(slow().is_newer(other));
    EXPECT_FALSE(slow().is_newer(other));
}

TEST_F(Hosts, ALookThatFindsAllAsItWasWakesNobody) {
    create("a", "gpu0");
    create("b", "gpu0");
    const auto look_again = [this] {
        world.clock.advance(GpuModel::kRefresh);
        slow().iterate();
    };
    look_again();
    look_again();
    const auto before = slow().snapshot();
    std::uint64_t seen = 0;
    EXPECT_TRUE(slow().is_newer(seen));
    changes = 0;
    look_again();
    EXPECT_EQ(changes, 0) << "the clock of the device alone went on";
    EXPECT_FALSE(slow().is_newer(seen));
    EXPECT_GT(slow().snapshot()->made_at, before->made_at) << "it was looked at all the same";
    world.pf().vfs.at(2).switches += 1;
    look_again();
    EXPECT_EQ(changes, 1);
    EXPECT_TRUE(slow().is_newer(seen));
    EXPECT_EQ(slow().snapshot()->vfs.at(2).active.core->switches,
              before->vfs.at(2).active.core->switches + 1);
    EXPECT_EQ(&slow().snapshot()->vfs.at(1), &before->vfs.at(1)) << "nothing was copied";
    world.pf().info.device_resets += 1;
    look_again();
    EXPECT_EQ(changes, 2) << "of the GPU itself";
}

TEST_F(Hosts, AnAnswerIsAChangeAlsoWhereNothingHasChanged) {
    slow().iterate();
    world.clock.advance(GpuModel::kRefresh);
    slow().iterate();
    changes = 0;
    bool is_answered = false;
    slow().ask<int>([](GpuModel&) { return 7; },
                    [&](const Result<int>& answer) { is_answered = answer == 7; });
    slow().iterate();
    EXPECT_GT(changes, 0);
    world.manager->finish();
    EXPECT_TRUE(is_answered);
}

TEST_F(Hosts, TheMainLoopIsTheLastToLetGoOfWhatARequestHolds) {
    auto held = std::make_shared<int>(0);
    const std::weak_ptr<int> seen = held;
    create("a", "gpu0");
    slow().iterate();
    world.manager->finish();
    world.manager->set_vf({"gpu0", 1}, {{"weight", std::uint64_t{7}}}, [held](const Result<>&) {});
    held.reset();
    bool is_unlock = false;
    on_change = [&] {
        world.manager->finish();
        is_unlock = seen.expired();
    };
    slow().iterate();
    EXPECT_TRUE(is_unlock) << "the GPU's thread would do it, at the end of its turn";
}

TEST_F(Hosts, ARequestThatWaitedTooLongIsRefusedAndNotDone) {
    create("a", "gpu0");
    world.clock.advance(GpuHost::kTimeout + 1s);
    slow().iterate();
    world.manager->finish();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].error().id, ErrorId::TimedOut);
    EXPECT_EQ(answers[0].error().cause,
              "gpu0: its PF driver was busy for 16 s; the request was not started");
    EXPECT_TRUE(world.pf("gpu0").vfs.empty());
}

TEST_F(Hosts, ANameAskedForIsTakenUntilTheAnswer) {
    create("a", "gpu0");
    create("a", "gpu1");
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].error().id, ErrorId::NameTaken);
    EXPECT_THAT(answers[0].error().cause, HasSubstr("another request is giving a VF the name 'a'"));
    world.pf("gpu0").refuse = "provision";
    slow().iterate();
    world.manager->finish();
    create("a", "gpu1");
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_FALSE(answers[1]);
    EXPECT_TRUE(answers[2]) << "it was not given after all";
}

TEST_F(Hosts, AListWaitsOnceForALateGpuAndThenNoMore) {
    ASSERT_TRUE(slow().request_refresh(Freshness::Gpu));
    slow().await_refresh(1ms);  // the turn does not come
    EXPECT_FALSE(slow().request_refresh(Freshness::Gpu));
    slow().iterate();
    EXPECT_EQ(slow().snapshot()->gpu.state, GpuState::Ok);
}

TEST_F(Hosts, AListAsksThePfCoreForWhatEventsDoNotTellAndNoMore) {
    create("a", "gpu0");
    create("b", "gpu0");
    FakePf& pf = world.pf("gpu0");
    slow().iterate();
    pf.set_state(1, VGPU_PF_VF_READY);
    slow().iterate();
    const auto asked_for = [&](Freshness wanted) {
        world.clock.advance(GpuModel::kFreshness);
        pf.asked.clear();
        pf.set_state(1, VGPU_PF_VF_RUNNING);
        pf.vfs.at(2).switches += 1;
        EXPECT_TRUE(slow().request_refresh(wanted));
        slow().iterate();
        return std::pair{pf.asked["get_info"], pf.asked["get_vf"]};
    };
    EXPECT_EQ(asked_for(Freshness::Counters), (std::pair{1, 2}));
    EXPECT_EQ(slow().snapshot()->vfs.at(2).active.core->switches, 1u);
    pf.set_state(1, VGPU_PF_VF_READY);
    EXPECT_EQ(asked_for(Freshness::Events), (std::pair{0, 0}));
    EXPECT_EQ(slow().snapshot()->vf_state(1), VGPU_PF_VF_RUNNING) << "by the event";
    EXPECT_EQ(asked_for(Freshness::Gpu), (std::pair{1, 0}));
    EXPECT_EQ(slow().snapshot()->vfs.at(2).active.core->switches, 1u) << "not asked for";
}

TEST_F(Hosts, OfTwoListsBeforeATurnTheOneThatWantsMoreIsServed) {
    create("a", "gpu0");
    slow().iterate();
    world.clock.advance(GpuModel::kFreshness);
    FakePf& pf = world.pf("gpu0");
    pf.asked.clear();
    EXPECT_TRUE(slow().request_refresh(Freshness::Counters));
    EXPECT_FALSE(slow().request_refresh(Freshness::Events)) << "that GPU is late already";
    slow().iterate();
    EXPECT_EQ(pf.asked["get_vf"], 1);
    pf.set_state(1, VGPU_PF_VF_READY);
    EXPECT_TRUE(slow().request_refresh(Freshness::Events)) << "it is late no more";
}

TEST_F(Hosts, AListForWhatEventsTellDisturbsNoGpuThatHasNone) {
    create("a", "gpu0");
    const auto iterate_and_publish = [this] {
        world.clock.advance(GpuHost::kPublish);
        slow().iterate();
    };
    iterate_and_publish();
    iterate_and_publish();
    EXPECT_FALSE(slow().request_refresh(Freshness::Events)) << "all that came are in the snapshot";
    world.pf("gpu0").set_state(1, VGPU_PF_VF_READY);
    EXPECT_TRUE(slow().request_refresh(Freshness::Events));
    slow().iterate();
    EXPECT_EQ(slow().snapshot()->vf_state(1), VGPU_PF_VF_READY);
    EXPECT_FALSE(slow().request_refresh(Freshness::Events));
    EXPECT_TRUE(slow().request_refresh(Freshness::Gpu)) << "no event tells of counters";
    slow().iterate();
    world.clock.advance(GpuModel::kFreshness + 1ms);
    EXPECT_TRUE(slow().request_refresh(Freshness::Events))
        << "waits and shares change by time alone";
}

TEST_F(Hosts, WhatAGpuLookedAtByItselfIsNotAskedForAgain) {
    slow().iterate();
    world.clock.advance(GpuModel::kRefresh);
    slow().iterate();
    world.clock.advance(100ms);
    EXPECT_FALSE(slow().request_refresh(Freshness::Counters, 100ms));
    world.pf("gpu0").push(VGPU_PF_EVENT_WAKE, 1, 1);
    EXPECT_TRUE(slow().request_refresh(Freshness::Events));
    slow().iterate();
    EXPECT_FALSE(slow().request_refresh(Freshness::Counters, 100ms))
        << "a list that wanted less was later";
    EXPECT_TRUE(slow().request_refresh(Freshness::Counters)) << "it is to look now";
}

TEST_F(Hosts, AChangedWeightIsAnsweredBeforeSharesFollowAndAListWaitsForThem) {
    create("a", "gpu0");
    slow().iterate();
    world.manager->finish();
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    ASSERT_TRUE(slow().snapshot()->is_current());
    bool is_answered = false;
    std::vector<bool> were_current;
    on_change = [&] { were_current.push_back(slow().snapshot()->is_current()); };
    world.manager->set_vf({"gpu0", 1}, {{"weight", std::uint64_t{300}}},
                          [&](const Result<>& done) { is_answered = done.has_value(); });
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    on_change = nullptr;
    world.manager->finish();
    EXPECT_TRUE(is_answered);
    ASSERT_FALSE(were_current.empty());
    EXPECT_FALSE(were_current.front()) << "with the answer";
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    EXPECT_TRUE(slow().snapshot()->is_current());
    EXPECT_EQ(slow().snapshot()->vfs.at(1).record.spec.weight, 300u);
}

TEST_F(Hosts, SettingsThatComeOneAfterTheOtherGetOneTable) {
    create("a", "gpu0");
    slow().iterate();
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    const auto generation = [&] { return world.pf().table.generation; };
    const auto before = generation();
    for (std::uint64_t weight = 200; weight < 205; ++weight) {
        set_weight(weight);
        slow().iterate();
        EXPECT_EQ(slow().snapshot()->vfs.at(1).record.spec.weight, weight);
        EXPECT_EQ(slow().wake_at(), world.clock.now() + GpuHost::kTablePause);
        EXPECT_EQ(slow().awake_until(), slow().wake_at());
        world.clock.advance(GpuHost::kTablePause / 2);
    }
    EXPECT_EQ(generation(), before);
    world.clock.advance(GpuHost::kTablePause / 2);
    slow().iterate();
    EXPECT_EQ(generation(), before + 1);
    EXPECT_LE(slow().awake_until(), world.clock.now()) << "it may sleep";
}

TEST_F(Hosts, ASettingIsShownAtOnceAndTheOtherVfsAsTheyWere) {
    create("a", "gpu0");
    create("b", "gpu0");
    slow().iterate();
    for (const std::uint32_t vf : {1u, 2u}) world.pf().give_work(vf);
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    const auto before = slow().snapshot();
    set_weight(300);
    slow().iterate();
    const auto after = slow().snapshot();
    EXPECT_EQ(after->vfs.at(1).record.spec.weight, 300u);
    EXPECT_EQ(&after->vfs.at(2), &before->vfs.at(2)) << "nothing was copied";
    EXPECT_DOUBLE_EQ(after->vfs.at(2).timing->share_ideal, 0.5);
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    EXPECT_DOUBLE_EQ(slow().snapshot()->vfs.at(2).timing->share_ideal, 0.25) << "shares follow";
}

/// The PF core's sysfs sets, in a step, what a request could have set.
TEST_F(Hosts, AStepThatChangedASettingDoesNotHideWhatTheNextRequestDoes) {
    create("a", "gpu0");
    slow().iterate();
    world.pf().push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_WEIGHT, 300);
    slow().iterate();
    create("b", "gpu0");
    slow().iterate();
    EXPECT_TRUE(slow().snapshot()->has_vf(2));
    EXPECT_EQ(slow().snapshot()->vfs.at(1).record.spec.weight, 300u);
}

TEST_F(Hosts, SettingsWithoutAnEndDoNotKeepTheTableFromThem) {
    create("a", "gpu0");
    slow().iterate();
    world.clock.advance(GpuHost::kPublish);
    slow().iterate();
    const auto before = world.pf().table.generation;
    const auto began_at = world.clock.now();
    for (std::uint64_t weight = 200; world.pf().table.generation == before; ++weight) {
        set_weight(weight);
        slow().iterate();
        ASSERT_LE(world.clock.now() - began_at, GpuHost::kLatestTable);
        world.clock.advance(100us);
    }
}

TEST_F(Hosts, AListDoesNotWaitForTheNextSetting) {
    create("a", "gpu0");
    slow().iterate();
    set_weight(300);
    slow().iterate();
    EXPECT_FALSE(slow().snapshot()->is_current());
    EXPECT_TRUE(slow().request_refresh(Freshness::Events));
    set_weight(200);
    slow().iterate();
    EXPECT_TRUE(slow().snapshot()->is_current());
}

TEST_F(Hosts, AListThatMayBeOlderDisturbsNoGpuThatWasJustLookedAtAsClosely) {
    slow().iterate();
    EXPECT_TRUE(slow().request_refresh(Freshness::Gpu, 100ms)) << "nobody has looked yet";
    slow().iterate();
    world.clock.advance(100ms);
    EXPECT_FALSE(slow().request_refresh(Freshness::Events, 100ms));
    EXPECT_FALSE(slow().request_refresh(Freshness::Gpu, 100ms));
    EXPECT_TRUE(slow().request_refresh(Freshness::Counters, 100ms)) << "that was not looked at";
    slow().iterate();
    world.clock.advance(101ms);
    EXPECT_TRUE(slow().request_refresh(Freshness::Events, 100ms)) << "that was too long ago";
    slow().iterate();
    EXPECT_TRUE(slow().request_refresh(Freshness::Gpu)) << "it is to look now";
}

TEST_F(Hosts, SnapshotsAreMadeNoOftenerThanTheyAreLookedAt) {
    world.clock.advance(1s);
    slow().iterate();
    changes = 0;
    for (int i = 0; i < 150; ++i) {
        world.clock.advance(100us);
        world.pf().push(VGPU_PF_EVENT_WAKE, 1, 1);
        slow().iterate();
    }
    EXPECT_EQ(changes, 1);
    EXPECT_LE(slow().wake_at() - world.clock.now(), GpuHost::kPublish);
}

}  // namespace
}  // namespace vgpu::daemon
