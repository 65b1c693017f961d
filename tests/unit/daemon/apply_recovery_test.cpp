// SPDX-License-Identifier: MIT
//
// Applies whose vgpud dies: at every write to the disk and every change of a PF core, with and
// without a reboot of the PF cores, once and twice. What the next vgpud makes of it is the old or
// the new configuration; and what it does when that cannot be had.
#include "daemon/service/jobs/apply_recovery.h"

#include "tests/unit/daemon/jobs_fixture.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <functional>

namespace vgpu::daemon {
namespace {

using ::testing::Contains;
using testing::FakePf;
using ::testing::HasSubstr;
using testing::JobsOnAFakePf;
using testing::kAfter;
using testing::kBefore;
using ::testing::Not;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

struct Killed {};

enum class Then { Restart, Reboot };

class InterruptedApply : public JobsOnAFakePf {
protected:
    explicit InterruptedApply(const std::vector<std::string>& gpus = {"gpu0"})
        : JobsOnAFakePf(gpus), gpus_(gpus) {}

    /// Kills vgpud at the `at`-th point of `work`; false if it never comes to that.
    bool is_killed_at(int at, const std::function<void()>& work) {
        int seen = 0;
        const auto on_point = [&seen, at] {
            if (++seen == at) throw Killed{};
        };
        world.state.on_point = on_point;
        for (const std::string& gpu : gpus_) world.pf(gpu).on_change = on_point;
        bool was_killed = false;
        try {
            work();
        } catch (const Killed&) {
            // what is in the files and the PF core now is what the next vgpud finds
            was_killed = true;
        }
        world.state.on_point = nullptr;
        for (const std::string& gpu : gpus_) world.pf(gpu).on_change = nullptr;
        return was_killed;
    }
    /// Kills it when it asks the PF core to release `vf`.
    void kill_at_release(std::uint32_t vf, const std::string& document,
                         const Options& options = {}) {
        world.pf().refuses = [vf](const std::string& operation, std::uint32_t which) {
            if (operation == "release" && which == vf) throw Killed{};
            return false;
        };
        EXPECT_THROW(apply(document, options), Killed);
        world.pf().refuses = nullptr;
    }
    /// The PF core has taken the release, and scrubs.
    void kill_in_the_scrub_of_b() {
        world.pf().scrubs_at_once = false;
        world.pf().refuses = [this](const std::string& operation, std::uint32_t vf) {
            if (operation == "set_run_table" && world.pf().vfs.contains(2) && vf == 0 &&
                world.pf().vfs.at(2).state == static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING))
                throw Killed{};
            return false;
        };
        EXPECT_THROW(apply(kAfter), Killed);
        world.pf().refuses = nullptr;
    }
    void begin_next_vgpud(Then then = Then::Restart) {
        if (then == Then::Reboot)
            for (const std::string& gpu : gpus_) world.pf(gpu).restart();
        restart();
    }
    /// Ten seconds, or until nothing is left to be done.
    void settle() {
        constexpr int kMin = 8, kMax = 40;
        for (int i = 0; i < kMin || (i < kMax && !is_quiet()); ++i) {
            step();
            world.clock.advance(250ms);
        }
    }
    [[nodiscard]] bool is_quiet() const {
        const auto all = jobs->list();
        return std::all_of(all.begin(), all.end(), [](const JobView& job) {
            return job.state == "done" || job.state == "failed" || job.state == "cancelled";
        });
    }
    /// All that is defined is in service as it is defined, and nothing else.
    void expect_in_service() {
        for (const std::string& gpu : gpus_) {
            const GpuRecord record = world.manager->store().gpu(gpu);
            const auto& active = world.pf(gpu).vfs;
            ASSERT_EQ(record.vfs.size(), active.size()) << gpu;
            for (const auto& [vf, one] : record.vfs) {
                EXPECT_EQ(active.at(vf).vram_bytes, one.spec.resources.vram_bytes) << one.spec.name;
                EXPECT_FALSE(one.next || one.is_releasing) << one.spec.name;
                EXPECT_EQ(world.gpu(gpu).view(vf).condition, "") << one.spec.name;
            }
        }
    }
    std::vector<std::string> admin_events(EventKind kind) {
        std::vector<std::string> texts;
        for (const AdminEvent& admin_event : world.manager->take_admin_events())
            if (admin_event.kind == kind) texts.push_back(admin_event.text);
        return texts;
    }
    struct Seen {
        int olds = 0, changes = 0;
    };
    /// From `before` to `after`, killed at each point there is.
    void kill_everywhere(const std::string& before, const std::string& after, Then then,
                         Seen& seen) {
        const std::string target = after_everything(before, after);
        const std::string old = exported();
        bool was_killed = true;
        for (int at = 1; was_killed; ++at) {
            SCOPED_TRACE(fmt::format("killed at point {}", at));
            was_killed = is_killed_at(at, [&] { apply(after); });
            begin_next_vgpud(then);
            settle();
            const std::string now = exported();
            ASSERT_TRUE(now == old || now == target) << now;
            now == old ? ++seen.olds : ++seen.changes;
            ASSERT_FALSE(recorded());
            expect_in_service();
            ASSERT_EQ(apply(before).state, "done");
            ASSERT_EQ(exported(), old);
        }
    }
    /// What `after` exports; `before` is in force again.
    std::string after_everything(const std::string& before, const std::string& after) {
        EXPECT_EQ(apply(before).state, "done");
        EXPECT_EQ(apply(after).state, "done");
        const std::string target = exported();
        EXPECT_EQ(apply(before).state, "done");
        EXPECT_NE(exported(), target);
        return target;
    }

    std::vector<std::string> gpus_;
};

class InterruptedApplyOfTwoGpus : public InterruptedApply {
protected:
    InterruptedApplyOfTwoGpus() : InterruptedApply({"gpu0", "gpu1"}) {}
};

/// b grows, d comes, c is one of the other GPU from now on; e is f and grows.
constexpr const char* kTwoBefore = R"({
    "profiles": {"small": {"resources": {"vram": "64MiB"}},
                 "large": {"resources": {"vram": "128MiB"}}},
    "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "small", "name": "b"},
                                              {"profile": "large", "name": "c"}]},
                      {"gpu": "gpu1", "vfs": [{"profile": "small", "name": "e", "was": "f"}]}]}
})";
constexpr const char* kTwoAfter = R"({
    "profiles": {"small": {"resources": {"vram": "64MiB"}, "scheduler": {"weight": 7}},
                 "large": {"resources": {"vram": "128MiB"}}},
    "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "large", "name": "b"},
                                              {"profile": "small", "name": "d"}]},
                      {"gpu": "gpu1", "scheduler": {"max_gap_ms": 80},
                       "vfs": [{"profile": "large", "name": "f", "was": "e"},
                               {"profile": "small", "name": "c"}]}]}
})";

// --- killed at every point

TEST_F(InterruptedApply, KilledAnywhereTheNextVgpudComesToTheOldOrTheNewConfiguration) {
    Seen seen;
    kill_everywhere(kBefore, kAfter, Then::Restart, seen);
    EXPECT_GE(seen.olds, 2) << "killed before the intent is durable";
    EXPECT_GE(seen.changes, 40);
}

TEST_F(InterruptedApply, PoweredOffAnywhereTheNextVgpudComesToTheOldOrTheNewConfiguration) {
    Seen seen;
    kill_everywhere(kBefore, kAfter, Then::Reboot, seen);
    EXPECT_GE(seen.changes, 40);
}

TEST_F(InterruptedApplyOfTwoGpus, KilledAnywhereBothHaveTheOldOrBothTheNewConfiguration) {
    Seen seen;
    kill_everywhere(kTwoBefore, kTwoAfter, Then::Restart, seen);
    EXPECT_GE(seen.changes, 40);
}

TEST_F(InterruptedApplyOfTwoGpus, PoweredOffAnywhereBothHaveTheOldOrBothTheNewConfiguration) {
    Seen seen;
    kill_everywhere(kTwoBefore, kTwoAfter, Then::Reboot, seen);
    EXPECT_GE(seen.changes, 40);
}

/// c is the last to go, and the PF core keeps it.
TEST_F(InterruptedApply, KilledAnywhereOfOneThatFailsAndIsTakenBackTheOldOneIsThere) {
    for (const Then then : {Then::Restart, Then::Reboot}) {
        ASSERT_EQ(apply(kBefore).state, "done");
        const std::string old = exported();
        bool was_killed = true;
        for (int at = 1; was_killed; ++at) {
            SCOPED_TRACE(fmt::format("killed at point {}", at));
            world.pf().refuses = [](const std::string& operation, std::uint32_t vf) {
                return operation == "release" && vf == 3;
            };
            was_killed = is_killed_at(at, [&] { apply(kAfter); });
            begin_next_vgpud(then);
            settle();
            // between its record and its release c has no VF after a reboot: then it can go
            const bool is_gone = then == Then::Reboot && planned(kAfter).empty();
            ASSERT_TRUE(is_gone || exported() == old) << exported();
            ASSERT_FALSE(recorded());
            expect_in_service();
            world.pf().refuses = nullptr;
            ASSERT_EQ(apply(kBefore).state, "done");
            ASSERT_EQ(exported(), old);
        }
    }
}

TEST_F(InterruptedApplyOfTwoGpus, KilledAgainWhileItRecoversItStillComesToTheOldOrTheNewOne) {
    const std::string target = after_everything(kTwoBefore, kTwoAfter);
    const std::string old = exported();
    int seconds = 0;
    for (int first = 5; is_killed_at(first, [&] { apply(kTwoAfter); }); first += 17) {
        bool was_killed = true;
        for (int second = 1; was_killed; second += 3, ++seconds) {
            SCOPED_TRACE(fmt::format("killed at point {}, then at {}", first, second));
            was_killed = is_killed_at(second, [&] {
                begin_next_vgpud();
                settle();
            });
            begin_next_vgpud();
            settle();
            const std::string now = exported();
            ASSERT_TRUE(now == old || now == target) << now;
            ASSERT_FALSE(recorded());
            expect_in_service();
            ASSERT_EQ(apply(kTwoBefore).state, "done");
            if (!was_killed) continue;
            ASSERT_TRUE(is_killed_at(first, [&] { apply(kTwoAfter); }));
        }
    }
    EXPECT_GE(seconds, 50);
}

// --- what is seen of it

TEST_F(InterruptedApply, IsAJobThatIsNotifiedOfAndHoldsItsGpusFromTheStart) {
    ASSERT_EQ(apply(kBefore).state, "done");
    kill_at_release(3, kAfter);
    begin_next_vgpud();
    const JobView begun = view(1);
    EXPECT_EQ(begun.kind, "recovery");
    EXPECT_EQ(begun.state, "running");
    EXPECT_EQ(world.create({}).error().id, ErrorId::Busy);
    EXPECT_EQ(world.create({}).error().cause,
              "gpu0 is being changed by job 1 (recovery of apply 'night')");
    const std::uint32_t later = begin(kBefore);
    EXPECT_EQ(view(later).state, "waiting") << "another apply waits its turn";
    EXPECT_THAT(
        admin_events(EventKind::ApplyResumed),
        Contains("job 1 (recovery of apply 'night'): the apply was interrupted and continues"));
    settle();
    EXPECT_EQ(view(1).state, "done");
    EXPECT_EQ(view(1).progress, 1.0);
    EXPECT_FALSE(view(1).error);
    EXPECT_THAT(admin_events(EventKind::ApplyFinished),
                Contains(HasSubstr("apply 'night'): the configuration is in force")));
    EXPECT_EQ(view(later).state, "done");
    EXPECT_TRUE(world.create({}));
}

TEST_F(InterruptedApply, ThatIsOverLeavesNothingToRecover) {
    ASSERT_EQ(apply(kBefore).state, "done");
    EXPECT_FALSE(recorded());
    world.pf().refuse = "provision";
    EXPECT_EQ(apply(kAfter).state, "failed");
    EXPECT_FALSE(recorded());
    begin_next_vgpud();
    EXPECT_TRUE(jobs->list().empty());
}

// --- what cannot be done any more

TEST_F(InterruptedApplyOfTwoGpus, AGpuWithADamagedStateIsWaitedForUntilItIsRecovered) {
    const std::string target = after_everything(kTwoBefore, kTwoAfter);
    const std::string old = exported();
    ASSERT_TRUE(is_killed_at(40, [&] { apply(kTwoAfter); }));
    world.state.files.at("gpus/gpu1.json.bak") = world.state.file("gpu1");
    world.state.file("gpu1") = "x";
    begin_next_vgpud();
    settle();
    EXPECT_TRUE(recorded());
    EXPECT_THAT(view(1).step, HasSubstr("waiting for gpu1: the state file memory/gpus/gpu1.json"));
    EXPECT_EQ(world.create({}, "gpu0").error().id, ErrorId::Busy);
    StateStore store(world.state);
    store.load();
    ASSERT_TRUE(store.recover());
    begin_next_vgpud();
    settle();
    const std::string now = exported();
    EXPECT_TRUE(now == old || now == target) << now;
    EXPECT_FALSE(recorded());
    expect_in_service();
}

TEST_F(InterruptedApply, AVfThatWasClaimedMeanwhileIsNotTakenAndAllIsTakenBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string old = exported();
    // d is there, b was to grow, c to go
    kill_at_release(2, kAfter);
    begin_next_vgpud();
    ASSERT_TRUE(world.claim({"gpu0", 3}, "vm"));
    const std::uint32_t generation = world.pf().vfs.at(3).generation;
    settle();
    EXPECT_EQ(exported(), old);
    EXPECT_EQ(world.pf().vfs.at(3).generation, generation) << "nobody touched it";
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_EQ(
        view(1).error->cause,
        "destroy gpu0/vf3 'c': it belongs to 'vm'; the use would end; everything is as before");
    EXPECT_THAT(admin_events(EventKind::ApplyRolledBack),
                Contains(HasSubstr("it belongs to 'vm'")));
}

TEST_F(InterruptedApply,
       WhereOldAndNewWouldBothTakeAVfFromItsUserTheRestIsNotifiedAndNobodyDisturbed) {
    ASSERT_EQ(apply(kBefore).state, "done");
    kill_at_release(2, kAfter);
    begin_next_vgpud();
    // d is of the new configuration, c of the old one
    world.pf().vfs.at(4).attached = 1;
    ASSERT_TRUE(world.claim({"gpu0", 3}, "vm"));
    world.pf().log.clear();
    settle();
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_THAT(view(1).error->cause,
                HasSubstr("not everything could be rolled back (destroy gpu0/vf4 'd': a client has "
                          "it open); 'vgpuctl plan FILE' shows the remaining steps"));
    EXPECT_THAT(world.pf().log, Not(Contains("release 3")));
    EXPECT_THAT(world.pf().log, Not(Contains("release 4")));
    EXPECT_EQ(planned(kBefore), "destroy d;");
    EXPECT_EQ(admin_events(EventKind::ApplyUnfinished).size(), 1u);
    EXPECT_FALSE(recorded()) << "it is not tried again";
    EXPECT_TRUE(world.create({}));
}

TEST_F(InterruptedApply, ForceCountsForWhoeverHadTheVfThenAndForNobodyLater) {
    for (const bool is_claimed_anew : {false, true}) {
        ASSERT_EQ(apply(kBefore).state, "done");
        const std::string old = exported();
        const auto claim = world.claim({"gpu0", 3}, "vm");
        ASSERT_TRUE(claim);
        kill_at_release(2, kAfter, {{"force", true}});
        begin_next_vgpud();
        if (is_claimed_anew) {
            ASSERT_TRUE(world.release({"gpu0", 3}, "vm", *claim));
            ASSERT_TRUE(world.claim({"gpu0", 3}, "vm"));
        }
        settle();
        EXPECT_EQ(view(1).state, is_claimed_anew ? "failed" : "done");
        EXPECT_EQ(exported() == old, is_claimed_anew);
        EXPECT_EQ(world.pf().vfs.contains(3), is_claimed_anew);
    }
}

TEST_F(InterruptedApply, ForceCountsForNobodyWhoComesBetweenTheLookAndTheAct) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string old = exported();
    const auto claim = world.claim({"gpu0", 3}, "vm");
    ASSERT_TRUE(claim);
    kill_at_release(2, kAfter, {{"force", true}});
    world.pf().scrubs_at_once = false;
    begin_next_vgpud();
    step();
    ASSERT_EQ(view(1).step, "resize gpu0/vf2 'b'") << "c goes after it";
    ASSERT_TRUE(world.release({"gpu0", 3}, "vm", *claim));
    ASSERT_TRUE(world.claim({"gpu0", 3}, "another"));
    const std::uint32_t generation = world.pf().vfs.at(3).generation;
    world.pf().scrubs_at_once = true;
    world.pf().finish_scrub(2);
    settle();
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_EQ(exported(), old);
    EXPECT_EQ(world.pf().vfs.at(3).generation, generation) << "nobody touched it";
    EXPECT_EQ(world.gpu().view(3).record.owner.name, "another");
}

TEST_F(InterruptedApply, WhatThePfCoreRefusesIsTriedOnceAndTakenBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string old = exported();
    kill_at_release(2, kAfter);
    int tries = 0;
    world.pf().refuses = [&tries](const std::string& operation, std::uint32_t vf) {
        const bool is_it = operation == "release" && vf == 3;
        tries += is_it ? 1 : 0;
        return is_it;
    };
    begin_next_vgpud();
    settle();
    EXPECT_EQ(tries, 1);
    EXPECT_EQ(exported(), old);
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_THAT(view(1).error->cause, HasSubstr("destroy gpu0/vf3 'c': gpu0/vf3: destroy refused"));
    EXPECT_THAT(view(1).error->cause,
                HasSubstr("everything is as before, but the VRAM of 'b' is empty"));
}

/// d was recorded and not made when vgpud died.
TEST_F(InterruptedApply, ANewVfThatCannotBeHadIsAReasonToGoBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string old = exported();
    world.pf().refuses = [](const std::string& operation, std::uint32_t) {
        if (operation == "provision") throw Killed{};
        return false;
    };
    EXPECT_THROW(apply(kAfter), Killed);
    world.pf().refuses = [](const std::string& operation, std::uint32_t vf) {
        return operation == "provision" && vf == 4;
    };
    begin_next_vgpud();
    settle();
    EXPECT_EQ(exported(), old);
    EXPECT_THAT(view(1).error->cause, HasSubstr("'d' did not get its resources back"));
    expect_in_service();
}

// --- what is not there now

TEST_F(InterruptedApplyOfTwoGpus, APfCoreThatIsNotThereYetIsWaitedFor) {
    const std::string target = after_everything(kTwoBefore, kTwoAfter);
    kill_at_release(1, kTwoAfter);
    world.pf("gpu1").is_there = false;
    begin_next_vgpud();
    world.pf("gpu0").log.clear();
    settle();
    EXPECT_EQ(view(1).state, "running");
    EXPECT_THAT(view(1).step, HasSubstr("waiting for gpu1: "));
    EXPECT_EQ(world.create({}, "gpu0").error().id, ErrorId::Busy);
    EXPECT_THAT(world.pf("gpu0").log, Not(Contains(HasSubstr("release"))));
    step();
    EXPECT_GE(*jobs->next_step() - world.clock.now(), 1s) << "it does not spin";
    world.pf("gpu1").is_there = true;
    settle();
    EXPECT_EQ(view(1).state, "done");
    EXPECT_EQ(exported(), target);
}

TEST_F(InterruptedApplyOfTwoGpus, CancelTakesBackAndASecondOneDoesWithoutAGpuThatIsNotThere) {
    ASSERT_EQ(apply(kTwoBefore).state, "done");
    kill_at_release(1, kTwoAfter);
    world.pf("gpu1").is_there = false;
    begin_next_vgpud();
    settle();
    ASSERT_TRUE(jobs->cancel(1));
    settle();
    EXPECT_EQ(view(1).state, "rolling-back");
    EXPECT_EQ(recorded()->rollback_reason, "it was cancelled");
    ASSERT_TRUE(jobs->cancel(1));
    settle();
    EXPECT_EQ(view(1).state, "cancelled");
    EXPECT_THAT(view(1).error->cause, HasSubstr("not everything could be rolled back (gpu1: "));
    EXPECT_FALSE(recorded());
    EXPECT_TRUE(world.create({{"name", std::string("z")}}, "gpu0"));
}

TEST_F(InterruptedApplyOfTwoGpus, AGpuThatVgpudHasNoMoreIsLeftOutAndReported) {
    ASSERT_EQ(apply(kTwoBefore).state, "done");
    kill_at_release(1, kTwoAfter);
    world.forget("gpu1");
    begin_next_vgpud();
    settle();
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_THAT(view(1).error->cause, HasSubstr("gpu1: vgpud no longer has this GPU"));
    EXPECT_EQ(world.gpu("gpu0").view(1).record.spec.resources.vram_bytes, 128 * FakePf::kMiB);
    EXPECT_FALSE(recorded());
}

TEST_F(InterruptedApply, APfCoreThatDiesOfAnActIsNotKilledForEver) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string old = exported();
    constexpr int kAfterTheIntent = 6;
    ASSERT_TRUE(is_killed_at(kAfterTheIntent, [&] { apply(kAfter); }));
    begin_next_vgpud();
    ASSERT_TRUE(recorded());
    int deaths = 0;
    world.pf().on_change = [&] {
        const auto defined = world.manager->store().gpu("gpu0").vfs;
        const bool makes_d =
            defined.contains(4) && !defined.at(4).is_releasing && !world.pf().vfs.contains(4);
        if (!makes_d) return;
        ++deaths;
        world.pf().is_there = false;
    };
    for (int i = 0; i < 10; ++i) {
        world.pf().is_there = true;
        settle();
    }
    world.pf().on_change = nullptr;
    EXPECT_EQ(deaths, ApplyRecovery::kMaxLosses + 1);
    EXPECT_EQ(exported(), old);
    EXPECT_FALSE(recorded());
}

TEST_F(InterruptedApply, AFullDiskIsWaitedFor) {
    const std::string target = after_everything(kBefore, kAfter);
    kill_at_release(2, kAfter);
    begin_next_vgpud();
    world.state.is_full = true;
    settle();
    EXPECT_EQ(view(1).state, "running");
    EXPECT_THAT(view(1).step, HasSubstr("no space left"));
    world.state.is_full = false;
    settle();
    EXPECT_EQ(view(1).state, "done");
    EXPECT_EQ(exported(), target);
}

TEST_F(InterruptedApply, AScrubThatNeverEndsIsNoReasonToGoOnForEver) {
    ASSERT_EQ(apply(kBefore).state, "done");
    kill_in_the_scrub_of_b();
    begin_next_vgpud();
    step();
    EXPECT_EQ(view(1).step, "waiting for scrubs of VFs");
    for (int i = 0; i < 8; ++i) {
        world.clock.advance(StepExecutor::kTimeout);
        step();
    }
    EXPECT_EQ(view(1).state, "failed");
    EXPECT_EQ(view(1).error->id, ErrorId::TimedOut);
    EXPECT_FALSE(recorded());
}

/// The first is over soon; the PF core is lost over the act that begins the second.
TEST_F(InterruptedApply, EachScrubIsWaitedForAsIfItWereTheFirst) {
    const std::string target = after_everything(kBefore, kAfter);
    kill_in_the_scrub_of_b();
    begin_next_vgpud();
    step();
    ASSERT_EQ(view(1).step, "waiting for scrubs of VFs");
    world.pf().finish_scrub(2);
    lose_the_pf_at_a_release();
    settle();
    ASSERT_THAT(view(1).step, HasSubstr("waiting for gpu0: "));
    world.clock.advance(StepExecutor::kTimeout + 1s);
    world.pf().refuses = nullptr;
    world.pf().is_there = true;
    settle();
    EXPECT_EQ(view(1).step, "waiting for scrubs of VFs");
    EXPECT_EQ(view(1).state, "running");
    world.pf().finish_scrub(3);
    settle();
    EXPECT_EQ(view(1).state, "done");
    EXPECT_EQ(exported(), target);
}

/// A runner whose turns the test takes, so that answers come between two steps of the jobs.
class TestRunner final : public GpuRunner {
public:
    void start(GpuLoop& loop) override { loop.iterate(); }
    void wake() override {}
    void stop() override {}
};

/// The disk is full from the middle of the apply on, so nothing can be taken back either.
TEST_F(InterruptedApply, ADiskThatFillsUpInTheMiddleIsWaitedForByAnotherJob) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const auto old = world.manager->store().gpu("gpu0").vfs;
    world.manager->find_gpu("gpu0")->start(std::make_unique<TestRunner>(), [] {});
    world.pf().refuses = [this](const std::string& operation, std::uint32_t vf) {
        if (operation == "provision" && vf == 4) world.state.is_full = true;
        return false;
    };
    const std::uint32_t id = begin(kAfter);
    settle();
    world.pf().refuses = nullptr;
    EXPECT_EQ(view(id).state, "failed");
    EXPECT_THAT(view(id).error->cause, HasSubstr("a recovery job continues"));
    EXPECT_EQ(view(id + 1).kind, "recovery");
    EXPECT_EQ(view(id + 1).state, "rolling-back");
    EXPECT_EQ(world.create({}).error().id, ErrorId::Busy);
    world.state.is_full = false;
    settle();
    EXPECT_EQ(view(id + 1).state, "done");
    EXPECT_EQ(world.manager->store().gpu("gpu0").vfs, old);
    EXPECT_FALSE(recorded());
}

}  // namespace
}  // namespace vgpu::daemon
