// SPDX-License-Identifier: MIT
//
// Configurations on their way to a PF core in memory: done, failed at every step and taken back,
// cancelled, killed in the middle, and what the jobs say meanwhile.
#include "daemon/service/jobs/jobs.h"

#include "daemon/service/owners/assignments.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/jobs_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobsOnAFakePf;
using testing::kAfter;
using testing::kBefore;
using ::testing::Not;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr std::uint64_t kMiB = FakePf::kMiB;

TEST_F(JobsOnAFakePf, ApplyMakesExactlyWhatIsWanted) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const Uuid b = uuid_of(2);
    EXPECT_EQ(planned(kBefore), "");
    EXPECT_EQ(planned(kAfter), "set ;set a;set b;create d;resize b;destroy c;");
    const JobView job = apply(kAfter);
    EXPECT_EQ(job.state, "done") << (job.error ? job.error->cause : "");
    EXPECT_EQ(job.progress, 1.0);
    EXPECT_EQ(planned(kAfter), "");
    EXPECT_EQ(world.pf().vfs.at(2).vram_bytes, 128 * kMiB);
    EXPECT_EQ(uuid_of(2), b) << "a VF that is resized stays the same VF";
    EXPECT_EQ(world.gpu().view(2).record.spec.resources.security.guard_limits[0], 5u);
    EXPECT_FALSE(world.pf().vfs.contains(3));
    EXPECT_EQ(world.gpu().view(4).record.spec.name, "d");
}

TEST_F(JobsOnAFakePf, WhatIsExportedIsWhatIsThere) {
    ASSERT_EQ(apply(kAfter).state, "done");
    const std::string text = exported();
    EXPECT_EQ(planned(text), "");
    ASSERT_EQ(apply(kBefore).state, "done");
    EXPECT_NE(exported(), text);
    ASSERT_EQ(apply(text).state, "done");
    EXPECT_EQ(exported(), text);
}

TEST_F(JobsOnAFakePf, EverythingSurvivesARestartOfEverything) {
    ASSERT_EQ(apply(kAfter).state, "done");
    const std::string text = exported();
    world.pf().restart();
    restart();
    EXPECT_EQ(exported(), text);
    EXPECT_EQ(world.pf().vfs.size(), 3u);
}

/// Numbers the provisions and releases from 0 and refuses one of them.
struct Refusal {
    int at;
    int seen = 0;
    bool operator()(const std::string& operation, std::uint32_t) {
        return (operation == "provision" || operation == "release") && seen++ == at;
    }
};

TEST_F(JobsOnAFakePf, AFailureOfAnyStepTakesEverythingBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    bool is_done = false;
    for (int at = 0; !is_done; ++at) {
        ASSERT_LT(at, 20);
        SCOPED_TRACE(fmt::format("operation {} is refused", at));
        auto refusal = std::make_shared<Refusal>(Refusal{.at = at});
        world.pf().refuses = [refusal](const std::string& operation, std::uint32_t vf) {
            return (*refusal)(operation, vf);
        };
        const JobView job = apply(kAfter);
        world.pf().refuses = nullptr;
        is_done = job.state == "done";
        if (is_done) break;
        EXPECT_EQ(job.state, "failed");
        EXPECT_THAT(job.error->cause, HasSubstr("everything is as before")) << at;
        EXPECT_THAT(job.error->cause, HasSubstr(" of 4 ("));
        EXPECT_EQ(exported(), before);
        EXPECT_EQ(planned(kBefore), "");
    }
    EXPECT_EQ(planned(kAfter), "");
}

TEST_F(JobsOnAFakePf, AFailureSaysWhichStepItWasAndWhatItCost) {
    ASSERT_EQ(apply(kBefore).state, "done");
    bool is_second = false;
    world.pf().refuses = [&is_second](const std::string& operation, std::uint32_t vf) {
        return operation == "provision" && vf == 2 && !std::exchange(is_second, true);
    };
    const JobView job = apply(kAfter);
    EXPECT_EQ(
        job.error->cause,
        "step 3 of 4 (resize gpu0/vf2 'b'): the PF driver refused the new resources of gpu0/vf2; "
        "the VF has its old ones; everything is as before, but the VRAM of 'b' is empty");
    EXPECT_EQ(job.error->id, ErrorId::PfRefused);
}

/// None of them could be had after a reboot, and the PF core refuses the smaller one, too.
TEST_F(JobsOnAFakePf, AResizeOfAVfWithoutResourcesThatFailsLeavesItDefinedAsItWas) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    world.pf().refuse = "provision";
    world.pf().restart();
    restart();
    ASSERT_EQ(exported(), before);
    const JobView job = apply(R"({
        "profiles": {"tiny": {"resources": {"vram": "32MiB"}},
                     "small": {"resources": {"vram": "64MiB"}},
                     "large": {"resources": {"vram": "128MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "tiny", "name": "a"},
                                                  {"profile": "small", "name": "b"},
                                                  {"profile": "large", "name": "c"}]}]}
    })");
    EXPECT_EQ(job.state, "failed");
    EXPECT_EQ(job.error->cause,
              "step 2 of 2 (resize gpu0/vf1 'a'): gpu0/vf1 got neither its new nor its old "
              "resources; everything is as before");
    EXPECT_EQ(exported(), before);
    world.pf().refuse.clear();
    world.pass(GpuModel::kRestoreRetry);
    EXPECT_EQ(world.pf().vfs.at(1).vram_bytes, 64 * kMiB);
}

/// b was in service.
TEST_F(JobsOnAFakePf, AVfThatGetsNeitherItsNewNorItsOldResourcesIsNotifiedOf) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().refuses = [](const std::string& operation, std::uint32_t vf) {
        return operation == "provision" && vf == 2;
    };
    const JobView job = apply(kAfter);
    EXPECT_EQ(job.state, "failed");
    EXPECT_THAT(job.error->cause,
                HasSubstr("not everything could be rolled back (resize gpu0/vf2 'b': "));
    EXPECT_EQ(planned(kBefore), "") << "it is defined as it was";
}

TEST_F(JobsOnAFakePf, AFullDiskChangesNothing) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    world.state.is_full = true;
    const JobView job = apply(kAfter);
    EXPECT_EQ(job.error->id, ErrorId::StateNotWritten);
    world.state.is_full = false;
    EXPECT_EQ(exported(), before);
}

TEST_F(JobsOnAFakePf, APfCoreThatIsLostInTheMiddleIsTheEndOfTheJobAndAnotherOneTakesTheRestBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    lose_the_pf_at_a_release();
    const JobView job = apply(kAfter);
    EXPECT_EQ(job.state, "failed");
    EXPECT_EQ(job.error->id, ErrorId::PfLost);
    EXPECT_THAT(job.error->cause, HasSubstr("a recovery job continues"));
    EXPECT_EQ(view(3).kind, "recovery");
    EXPECT_EQ(view(3).state, "rolling-back");
    EXPECT_THAT(view(3).step, HasSubstr("waiting for gpu0: "));
    bring_the_pf_back();
    EXPECT_EQ(view(3).state, "done");
    EXPECT_EQ(exported(), before);
    EXPECT_EQ(apply(kAfter).state, "done") << "the next one begins from there";
    EXPECT_EQ(planned(kAfter), "");
}

/// The first act is a destroy, and it is on record when the PF core goes.
TEST_F(JobsOnAFakePf, APfCoreThatIsLostInTheFirstActIsARecoverysToGoOnWithToo) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    lose_the_pf_at_a_release();
    const JobView job = apply(R"({
        "profiles": {"small": {"resources": {"vram": "64MiB"}},
                     "large": {"resources": {"vram": "128MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "scheduler": {"max_gap_ms": 60},
                           "vfs": [{"profile": "small", "name": "a"},
                                   {"profile": "large", "name": "c"}]}]}
    })");
    EXPECT_EQ(job.state, "failed");
    EXPECT_EQ(job.error->id, ErrorId::PfLost);
    EXPECT_THAT(job.error->cause, HasSubstr("a recovery job continues"));
    bring_the_pf_back();
    EXPECT_EQ(view(3).state, "done");
    EXPECT_EQ(exported(), before);
}

TEST_F(JobsOnAFakePf, AVfInUseIsNotTakenFromItsUserWithoutForce) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().vfs.at(2).attached = 1;
    const auto done = provisions_and_releases();
    const JobView refused = apply(kAfter);
    EXPECT_EQ(refused.error->id, ErrorId::WrongState);
    EXPECT_THAT(refused.error->cause, HasSubstr("resize gpu0/vf2 'b': a client has it open"));
    EXPECT_EQ(provisions_and_releases(), done) << "nothing was begun";
    EXPECT_EQ(apply(kAfter, {{"force", true}}).state, "done");
}

/// b is given another size, c goes.
TEST_F(JobsOnAFakePf, APlanThatHasComeToMoreThanWasAgreedToIsNotCarriedOut) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const auto done = provisions_and_releases();
    for (const char* agreed : {"none", "vf-restart"}) {
        const JobView refused = apply(kAfter, {{"disruption", std::string(agreed)}});
        EXPECT_EQ(refused.error->id, ErrorId::WrongState);
        EXPECT_THAT(refused.error->cause, HasSubstr(fmt::format("at most '{}'", agreed)));
    }
    EXPECT_EQ(provisions_and_releases(), done) << "nothing was begun";
    EXPECT_EQ(apply(kAfter, {{"disruption", std::string("vf-loss")}}).state, "done");
}

/// b and then c are to be destroyed; the PF core does not let c go.
TEST_F(JobsOnAFakePf, AClaimedVfThatIsTakenByForceAndComesBackIsItsOwnersAgain) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const auto claim = world.claim({"gpu0", 2}, "slurm:7", {{"lease_s", std::uint64_t{600}}});
    ASSERT_TRUE(claim);
    const OwnerRecord owner = world.gpu().view(2).record.owner;
    world.pf().refuses = [](const std::string& operation, std::uint32_t vf) {
        return operation == "release" && vf == 3;
    };
    const JobView job = apply(R"({
        "profiles": {"small": {"resources": {"vram": "64MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "small", "name": "a"}]}]}
    })",
                              {{"force", true}});
    EXPECT_EQ(job.state, "failed");
    EXPECT_THAT(job.error->cause, HasSubstr("but the VRAM of 'b' is empty"));
    EXPECT_EQ(world.gpu().view(2).record.owner, owner);
    EXPECT_EQ(world.claim({"gpu0", 2}, "slurm:8").error().id, ErrorId::Claimed);
    EXPECT_TRUE(world.release({"gpu0", 2}, "slurm:7", *claim)) << "the claim is the one it had";
}

/// a, b and c are to be destroyed, one after the other, and the PF core does not let c go.
TEST_F(JobsOnAFakePf, AClaimThatEndsWhileItsVfIsGoneDoesNotComeBackWithIt) {
    const std::string owner = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
    testing::FakeVmSockets sockets;
    const auto unassign = [&] {
        Result<std::uint32_t> taken = fail(ErrorId::System, "no answer");
        Assignments(*world.manager, sockets, world.clock)
            .unassign(owner, {}, [&taken](Result<std::uint32_t> vfs) { taken = std::move(vfs); });
        return taken;
    };
    for (const bool is_taken_back : {false, true}) {
        ASSERT_EQ(apply(kBefore).state, "done");
        const auto claim = world.claim({"gpu0", 1}, owner);
        ASSERT_TRUE(claim);
        ASSERT_TRUE(world.claim({"gpu0", 2}, "slurm:7"));
        world.pf().scrubs_at_once = false;
        const std::uint32_t id =
            begin(R"({"profiles": {}, "configs": {"x": [{"gpu": "gpu0", "vfs": []}]}})",
                  {{"force", true}});
        step();
        world.pf().finish_scrub(1);
        for (int i = 0; i < 3; ++i) step();
        ASSERT_EQ(view(id).step, "destroy gpu0/vf2 'b'");
        if (is_taken_back) {
            EXPECT_EQ(unassign().value_or(99), 0u) << "there is none to be seen";
        } else {
            EXPECT_EQ(world.release({"gpu0", 1}, owner, *claim).error().id, ErrorId::NoSuchVf);
        }
        keep_c();
        end_the_scrub_of_b();
        world.pf().refuses = nullptr;
        EXPECT_EQ(view(id).state, "failed");
        EXPECT_EQ(planned(kBefore), "");
        EXPECT_EQ(world.gpu().view(1).record.owner, OwnerRecord{});
        EXPECT_EQ(world.gpu().view(2).record.owner.name, "slurm:7") << "it has not ended";
        ASSERT_TRUE(
            world.release({"gpu0", 2}, "slurm:7", world.gpu().view(2).record.owner.generation));
    }
}

/// b is still being scrubbed when its owner gives it back.
TEST_F(JobsOnAFakePf, AVfThatIsReleasedWhileItGoesComesBackWithoutAnOwner) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const auto claim = world.claim({"gpu0", 2}, "slurm:7");
    ASSERT_TRUE(claim);
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(R"({
        "profiles": {"small": {"resources": {"vram": "64MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "small", "name": "a"}]}]}
    })",
                                   {{"force", true}});
    step();
    ASSERT_EQ(view(id).step, "destroy gpu0/vf2 'b'");
    ASSERT_TRUE(world.release({"gpu0", 2}, "slurm:7", *claim));
    keep_c();
    end_the_scrub_of_b();
    EXPECT_EQ(view(id).state, "failed");
    EXPECT_EQ(planned(kBefore), "");
    EXPECT_EQ(world.gpu().view(2).record.owner, OwnerRecord{});
    EXPECT_TRUE(world.claim({"gpu0", 2}, "slurm:8"));
}

/// c is to go when b has been scrubbed.
TEST_F(JobsOnAFakePf, ForceCountsForNobodyWhoComesWhileTheApplyIsUnderWay) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    const auto claim = world.claim({"gpu0", 3}, "slurm:7");
    ASSERT_TRUE(claim);
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter, {{"force", true}});
    step();
    ASSERT_TRUE(world.release({"gpu0", 3}, "slurm:7", *claim));
    ASSERT_TRUE(world.claim({"gpu0", 3}, "slurm:8"));
    end_the_scrub_of_b();
    EXPECT_EQ(view(id).state, "failed");
    EXPECT_THAT(view(id).error->cause, HasSubstr("step 4 of 4 (destroy gpu0/vf3 'c'): gpu0/vf3 "
                                                 "('c') belongs to 'slurm:8'"));
    EXPECT_THAT(view(id).error->cause, HasSubstr("everything is as before"));
    EXPECT_EQ(exported(), before);
    EXPECT_EQ(world.gpu().view(3).record.owner.name, "slurm:8");
}

/// d is there when b is scrubbed; the PF core does not let c go.
TEST_F(JobsOnAFakePf, AVfThatWasClaimedMeanwhileStaysWhenAForcedApplyIsTakenBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter, {{"force", true}});
    step();
    ASSERT_TRUE(world.claim({"gpu0", 4}, "slurm:8"));
    keep_c();
    end_the_scrub_of_b();
    EXPECT_EQ(view(id).state, "failed");
    EXPECT_THAT(view(id).error->cause,
                HasSubstr("not everything could be rolled back (destroy gpu0/vf4 'd': gpu0/vf4 "
                          "('d') belongs to 'slurm:8'"));
    EXPECT_EQ(world.gpu().view(4).record.owner.name, "slurm:8");
    EXPECT_EQ(planned(kBefore), "destroy d;");
}

TEST_F(JobsOnAFakePf, AnotherVfUnderTheNumberOfOneThatGoesIsNotDestroyed) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    replace_vf(3);
    const JobView job = apply(kAfter);
    EXPECT_EQ(job.state, "failed");
    EXPECT_THAT(job.error->cause,
                HasSubstr("(destroy gpu0/vf3 'c'): gpu0/vf3 is now another VF (UUID "));
    EXPECT_THAT(job.error->cause, HasSubstr("everything is as before"));
    EXPECT_THAT(world.pf().log, Not(Contains("release 3")));
    EXPECT_EQ(exported(), before);
}

/// d is there when b is scrubbed; the PF core does not let c go.
TEST_F(JobsOnAFakePf, AnotherVfUnderTheNumberOfANewOneStaysWhenAnApplyIsTakenBack) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter);
    step();
    ASSERT_TRUE(world.pf().vfs.contains(4));
    replace_vf(4);
    keep_c();
    end_the_scrub_of_b();
    EXPECT_EQ(view(id).state, "failed");
    EXPECT_THAT(view(id).error->cause,
                HasSubstr("not everything could be rolled back (destroy gpu0/vf4 'd': gpu0/vf4 is "
                          "now another VF"));
    EXPECT_THAT(world.pf().log, Not(Contains("release 4")));
}

TEST_F(JobsOnAFakePf, ADryRunOnlyPlans) {
    const JobView job = apply(kAfter, {{"dry_run", true}});
    EXPECT_EQ(job.state, "done");
    EXPECT_THAT(job.plan, HasSubstr("vgpu-plan-1"));
    EXPECT_TRUE(world.pf().vfs.empty());
}

TEST_F(JobsOnAFakePf, MistakesAreTheCallersAndMakeNoJob) {
    EXPECT_EQ(jobs->apply("{", {}).error().id, ErrorId::BadConfiguration);
    EXPECT_EQ(jobs->apply(kAfter, {{"label", std::string("x")}}).error().id, ErrorId::NoSuchLabel);
    EXPECT_EQ(jobs->apply(kAfter, {{"labell", std::string("x")}}).error().id,
              ErrorId::UnknownOption);
    EXPECT_EQ(jobs->apply(kAfter, {{"force", std::uint64_t{1}}}).error().id, ErrorId::WrongType);
    EXPECT_EQ(jobs->apply(kAfter, {{"disruption", std::string("much")}}).error().cause,
              "option 'disruption' is 'much', not none, vf-restart or vf-loss");
    EXPECT_THAT(jobs->list(), IsEmpty());
}

TEST_F(JobsOnAFakePf, WhatDoesNotFitFailsBeforeAnythingIsDone) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const auto done = provisions_and_releases();
    const JobView job = apply(R"({
        "profiles": {"p": {"resources": {"vram": "256MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "p", "count": 9, "name": "v{n}"}]}]}
    })");
    EXPECT_EQ(job.error->id, ErrorId::NoVram);
    EXPECT_THAT(job.error->cause, HasSubstr("short by 272 MiB"));
    EXPECT_EQ(provisions_and_releases(), done);
}

TEST_F(JobsOnAFakePf, CancellingTakesBackWhatWasDone) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter);
    step();
    const JobView under_way = view(id);
    EXPECT_EQ(under_way.state, "running");
    EXPECT_EQ(under_way.step, "resize gpu0/vf2 'b'");
    EXPECT_EQ(under_way.progress, 0.5);
    ASSERT_TRUE(jobs->cancel(id));
    world.pf().finish_scrub(2);
    world.pf().scrubs_at_once = true;
    for (int i = 0; i < 10; ++i) step();
    const JobView over = view(id);
    EXPECT_EQ(over.state, "cancelled");
    EXPECT_THAT(over.error->cause,
                HasSubstr("cancelled after 3 of 4 steps; everything is as before"));
    EXPECT_THAT(over.error->cause, HasSubstr("the VRAM of 'b' is empty"));
    EXPECT_EQ(exported(), before);
    EXPECT_EQ(jobs->cancel(id).error().cause, "job 2 is over: it is cancelled");
    EXPECT_EQ(jobs->cancel(99).error().id, ErrorId::WrongState);
}

TEST_F(JobsOnAFakePf, CancellingDuringTheLastStepTakesBackToo) {
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::string before = exported();
    const std::string larger =
        std::string(kBefore).replace(std::string(kBefore).find("64MiB"), 5, "96MiB");
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(larger);
    step();
    world.pf().finish_scrub(1);
    step();
    EXPECT_EQ(view(id).step, "resize gpu0/vf2 'b'") << "the last one";
    ASSERT_TRUE(jobs->cancel(id));
    world.pf().scrubs_at_once = true;
    world.pf().finish_scrub(2);
    for (int i = 0; i < 10; ++i) step();
    EXPECT_EQ(view(id).state, "cancelled");
    EXPECT_EQ(exported(), before);
}

TEST_F(JobsOnAFakePf, OneJobRunsTheOthersWaitTheirTurn) {
    world.pf().scrubs_at_once = false;
    ASSERT_EQ(apply(kBefore).state, "done");
    const std::uint32_t first = begin(kAfter);
    const std::uint32_t second = begin(kBefore);
    step();
    EXPECT_EQ(view(first).state, "running");
    EXPECT_EQ(view(second).state, "waiting");
    for (std::size_t i = 1; i < Jobs::kMaxWaiting; ++i) begin(kBefore);
    const auto refused = jobs->apply(kBefore, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::Busy);
    EXPECT_EQ(refused.error().cause, fmt::format("8 jobs wait behind job {}", first));
    world.pf().scrubs_at_once = true;
    world.pf().finish_scrub(2);
    for (int i = 0; i < 40; ++i) step();
    EXPECT_EQ(view(first).state, "done");
    EXPECT_EQ(view(second).state, "done");
    EXPECT_EQ(planned(kBefore), "");
}

TEST_F(JobsOnAFakePf, NobodyElseChangesAGpuThatAJobChanges) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter);
    step();
    const std::string cause = fmt::format("gpu0 is being changed by job {} (apply 'night')", id);
    EXPECT_EQ(world.create({}).error().cause, cause);
    EXPECT_EQ(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{5}}}).error().cause, cause);
    EXPECT_EQ(world.set_gpu({"gpu0"}, {{"max_gap_ms", std::uint64_t{99}}}).error().cause, cause);
    EXPECT_EQ(world.destroy({"gpu0", 1}).error().cause, cause);
    EXPECT_EQ(world.destroy({"gpu0", 1}).error().id, ErrorId::Busy);
    world.pf().scrubs_at_once = true;
    world.pf().finish_scrub(2);
    for (int i = 0; i < 10; ++i) step();
    ASSERT_TRUE(is_over(id));
    EXPECT_TRUE(world.create({}));
}

TEST_F(JobsOnAFakePf, AScrubThatNeverEndsIsTakenBackAsFarAsCanBe) {
    ASSERT_EQ(apply(kBefore).state, "done");
    world.pf().scrubs_at_once = false;
    const std::uint32_t id = begin(kAfter);
    step();
    for (int i = 0; i < 4; ++i) {
        world.clock.advance(StepExecutor::kTimeout);
        step();
    }
    const JobView job = view(id);
    EXPECT_EQ(job.state, "failed");
    EXPECT_EQ(job.error->id, ErrorId::TimedOut);
    EXPECT_THAT(job.error->cause, HasSubstr("not everything could be rolled back"));
}

TEST_F(JobsOnAFakePf, JobsThatAreOverStayReadableForAWhile) {
    const std::uint32_t id = begin(kBefore);
    EXPECT_THAT(jobs->take_changes(), ElementsAre(::testing::Field(&JobEvent::result, "")));
    for (int i = 0; i < 5; ++i) step();
    const auto changes = jobs->take_changes();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes.front().id, id);
    EXPECT_EQ(changes.front().result, "done");
    world.clock.advance(Jobs::kKeepFor - 1s);
    step();
    EXPECT_EQ(jobs->list().size(), 1u);
    ASSERT_TRUE(jobs->next_step());
    EXPECT_LE(*jobs->next_step() - world.clock.now(), 1s);
    world.clock.advance(1s);
    step();
    EXPECT_THAT(jobs->list(), IsEmpty());
    EXPECT_FALSE(jobs->next_step()) << "nothing to wake up for";
    for (std::size_t i = 0; i < Jobs::kKeepApplies + 5; ++i) apply(kBefore);
    EXPECT_EQ(jobs->list().size(), Jobs::kKeepApplies);
}

}  // namespace
}  // namespace vgpu::daemon
