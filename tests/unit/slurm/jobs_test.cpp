// SPDX-License-Identifier: MIT
//
// A job's VFs from its start to its end, over a fake of Slurm's programs and of vgpud.
#include "daemon/engines/slurm/jobs.h"
#include "tests/unit/slurm/fake_slurm.h"
#include "tests/unit/slurm/fake_vgpud.h"

#include <gmock/gmock.h>

namespace vgpu::slurm {
namespace {

using ::testing::EndsWith;
using testing::FakePublished;
using testing::FakeSlurm;
using testing::FakeVgpud;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SlurmJobs : public ::testing::Test {
protected:
    static JobReference life(std::uint32_t number) {
        return {.cluster = "lab", .id = "17", .life = number};
    }
    void set_open(const std::string& owner) {
        for (auto& vf : vgpud.vfs) vf.is_open = vf.is_open || vf.owner == owner;
    }

    FakeSlurm slurm;
    FakeVgpud vgpud;
    FakePublished published;
    Controller controller{slurm, "n1"};
    Jobs jobs{controller, vgpud, published, "/run/vgpu"};
};

TEST_F(SlurmJobs, TheOwnerNamesClusterJobAndLife) {
    EXPECT_EQ(owner_of(life(3)), "slurm:lab:17.3");
    EXPECT_EQ(*life_of("slurm:lab:17.3", "lab"), (JobLife{.id = "17", .life = 3}));
    EXPECT_FALSE(life_of("slurm:other:17.3", "lab"));
    EXPECT_FALSE(life_of("libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10", "lab"));
    EXPECT_FALSE(life_of("slurm:lab:17", "lab"));
    EXPECT_FALSE(life_of("slurm:lab:17.03", "lab")) << "vgpu-slurm writes no leading zero";
}

TEST_F(SlurmJobs, AJobGetsItsVfsForItsUserAndNoMore) {
    slurm.jobs["17"] = {.gres = "vgpu:large(CNT:1),vgpu:small(CNT:2)"};
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 3);
    EXPECT_EQ(vgpud.users.at("slurm:lab:17.0").uid, 1000u);
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone) << "again";
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 3);
}

TEST_F(SlurmJobs, AJobWithoutVfsRunsWhileVgpudIsAway) {
    slurm.jobs["17"] = {.gres = ""};
    vgpud.is_away = true;
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, AJobThatFindsNoFreeVfIsRequeuedAndTheHostStaysInService) {
    slurm.jobs["17"] = {};
    for (auto& vf : vgpud.vfs) vf.owner = "somebody";
    published.save("published");
    const Outcome outcome = jobs.prolog(life(0));
    EXPECT_EQ(outcome.status, kDone) << "a failed prolog drains the host";
    EXPECT_EQ(slurm.jobs.at("17").state, "PENDING");
    EXPECT_EQ(slurm.state, "IDLE");
    EXPECT_FALSE(published.content) << "the next health check publishes less";
    EXPECT_THAT(outcome.log, HasSubstr("no VF of profile 'small' is free"));
}

TEST_F(SlurmJobs, AJobThatSlurmStartsWithoutTheVfsItAskedForIsRequeued) {
    slurm.jobs["17"] = {.gres = "", .asked = "gres:vgpu:small:1"};
    const Outcome outcome = jobs.prolog(life(0));
    EXPECT_EQ(outcome.status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "PENDING");
    EXPECT_EQ(slurm.state, "IDLE");
    EXPECT_THAT(outcome.log, HasSubstr("without the VFs that it asked for"));
}

TEST_F(SlurmJobs, AJobThatSlurmCannotRequeueIsCancelledAndTheHostStaysInService) {
    slurm.jobs["17"] = {};
    for (auto& vf : vgpud.vfs) vf.owner = "somebody";
    slurm.refusals["scontrol requeue"] = "Only batch jobs are accepted or processed\n";
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "CANCELLED");
    EXPECT_EQ(slurm.jobs.at("17").comment, "vgpu: no VF of profile 'small' is free");
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, AJobThatAnotherOfItsHostsHasRequeuedStaysPendingAndTheHostInService) {
    slurm.jobs["17"] = {.state = "PENDING"};
    for (auto& vf : vgpud.vfs) vf.owner = "somebody";
    slurm.refusals["scontrol requeue"] = "Job is pending execution\n";
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "PENDING");
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, AJobThatCanNeitherBeRequeuedNorCancelledDrainsTheHostWithAReason) {
    slurm.jobs["17"] = {};
    for (auto& vf : vgpud.vfs) vf.owner = "somebody";
    slurm.refusals["scontrol requeue"] = "Requested operation is presently disabled\n";
    slurm.refusals["scancel"] = "Unable to contact slurm controller\n";
    published.save("published");
    EXPECT_EQ(jobs.prolog(life(0)).status, kFailed);
    EXPECT_EQ(slurm.state, "IDLE+DRAIN");
    EXPECT_EQ(slurm.reason, "vgpu: no VF of profile 'small' is free");
    EXPECT_FALSE(published.content) << "the next health check resumes the host";
}

TEST_F(SlurmJobs, AJobThatAskedForOtherGresOnlyRunsWithoutVfs) {
    slurm.jobs["17"] = {.gres = "", .asked = "gres:gpu:1"};
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "RUNNING");
}

TEST_F(SlurmJobs, AStartWhileVgpudIsAwayDrainsTheHostWithAReason) {
    slurm.jobs["17"] = {};
    vgpud.is_away = true;
    EXPECT_EQ(jobs.prolog(life(0)).status, kFailed);
    EXPECT_EQ(slurm.state, "IDLE+DRAIN");
    EXPECT_EQ(slurm.reason, "vgpu: vgpud does not answer");
}

TEST_F(SlurmJobs, AStartThatFailsOnAHostWhichAnOperatorDrainedKeepsTheirReason) {
    slurm.jobs["17"] = {};
    slurm.state = "ALLOCATED+DRAIN";
    slurm.reason = "operator: new fans";
    vgpud.is_away = true;
    EXPECT_EQ(jobs.prolog(life(0)).status, kFailed);
    EXPECT_EQ(slurm.reason, "operator: new fans") << "a health check resumes hosts with ours";
}

TEST_F(SlurmJobs, AnUnknownAnswerOfSlurmFailsThePrologAndClaimsNothing) {
    slurm.foreign_words = "job 17 is running";
    EXPECT_EQ(jobs.prolog(life(0)).status, kFailed);
    EXPECT_EQ(vgpud.owned_by(""), 12);
}

TEST_F(SlurmJobs, AJobThatImitatesSlurmIsHeldWithACommentAndTheHostStaysInService) {
    slurm.jobs["17"] = {.name = "x UserId=root(0)"};
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "REQUEUE_HOLD");
    EXPECT_THAT(slurm.jobs.at("17").comment, HasSubstr("submit it with another name"));
    EXPECT_EQ(vgpud.owned_by(""), 12);
}

TEST_F(SlurmJobs, AJobThatAsksForMoreVfsThanVgpudGivesIsHeldAndTheHostStaysInService) {
    slurm.jobs["17"] = {.gres = "vgpu:small(CNT:257)"};
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "REQUEUE_HOLD");
    EXPECT_THAT(slurm.jobs.at("17").comment, HasSubstr("too many VFs"));
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, AJobThatImitatesSlurmAndCannotBeHeldIsCancelledAndTheHostStaysInService) {
    slurm.jobs["17"] = {.name = "x UserId=root(0)"};
    slurm.refusals["scontrol requeuehold"] = "Only batch jobs are accepted or processed\n";
    EXPECT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_EQ(slurm.jobs.at("17").state, "CANCELLED");
    EXPECT_THAT(slurm.jobs.at("17").comment, HasSubstr("submit it with another name"));
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, AJobThatRestartsOnAHealedHostWithoutAPrologGetsAClaimForItsNewLife) {
    slurm.jobs["17"] = {};
    ASSERT_EQ(jobs.prolog(life(0)).status, kDone);
    slurm.jobs["17"].restarts = 1;
    // the environment of the step still has the earlier life
    EXPECT_EQ(jobs.ensure(life(0)).status, kDone);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.1"), 1);
}

TEST_F(SlurmJobs, AFailedEnsureDoesNotDrainTheHost) {
    slurm.jobs["17"] = {};
    vgpud.is_away = true;
    EXPECT_EQ(jobs.ensure(life(0)).status, kFailed);
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmJobs, ATaskFindsItsVfsInItsEnvironment) {
    slurm.jobs["17"] = {};
    ASSERT_EQ(jobs.prolog(life(0)).status, kDone);
    const int calls = slurm.controller_calls;
    const Outcome outcome = jobs.task(life(0));
    EXPECT_EQ(outcome.status, kDone);
    EXPECT_THAT(outcome.out,
                StartsWith("export VGPU_SOCKET_0=/run/vgpu/owner/slurm:lab:17.0/0.sock\n"));
    EXPECT_EQ(slurm.controller_calls, calls) << "a thousand tasks ask nothing of the controller";
}

TEST_F(SlurmJobs, ATaskOfAJobWithoutItsVfFailsTheJob) {
    slurm.jobs["17"] = {.restarts = 1};
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    const Outcome outcome = jobs.task(life(1));
    EXPECT_EQ(outcome.status, kFailed) << "the VF of an earlier life is not this life's";
    EXPECT_THAT(outcome.log, HasSubstr("job 17 has no VF on n1"));
    EXPECT_THAT(outcome.out, IsEmpty());
}

TEST_F(SlurmJobs, ATaskDoesNotFindTheVfsOfTheJobThatSubmittedItsJob) {
    slurm.jobs["17"] = {.gres = ""};
    EXPECT_EQ(jobs.task(life(0)).out, "unset VGPU_SOCKET_0\n");
    slurm.jobs["17"].gres = "vgpu:small(CNT:2)";
    ASSERT_EQ(jobs.prolog(life(0)).status, kDone);
    EXPECT_THAT(jobs.task(life(0)).out, EndsWith("1.sock\nunset VGPU_SOCKET_2\n"));
}

TEST_F(SlurmJobs, ATaskOfAJobThatAskedForVfsAndGotNoneFailsTheJob) {
    slurm.jobs["17"] = {.gres = "", .asked = "gres:vgpu:small:1"};
    EXPECT_EQ(jobs.task(life(0)).status, kFailed);
}

TEST_F(SlurmJobs, ATaskOfAJobWithoutVfsIsLeftAlone) {
    slurm.jobs["17"] = {.gres = ""};
    EXPECT_EQ(jobs.task(life(0)).status, kDone);
    vgpud.is_away = true;
    EXPECT_EQ(jobs.task(life(0)).status, kDone) << "also while vgpud is away";
    slurm.jobs["17"].gres = "vgpu:small(CNT:1)";
    EXPECT_EQ(jobs.task(life(0)).status, kFailed);
}

TEST_F(SlurmJobs, TheEndOfAJobEndsItsClaims) {
    slurm.jobs["17"] = {.gres = "vgpu:small(CNT:2)"};
    ASSERT_EQ(jobs.prolog(life(0)).status, kDone);
    vgpud.vfs[5].owner = "slurm:lab:18.0";
    slurm.jobs["17"].state = "COMPLETING";
    EXPECT_EQ(jobs.epilog(life(0)).status, kDone);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 0);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:18.0"), 1) << "of another job";
}

TEST_F(SlurmJobs, TheEpilogOfARequeuedJobHasTheNumberOfTheNextLifeAndEndsTheEarlierOne) {
    slurm.jobs["17"] = {};
    ASSERT_EQ(jobs.prolog(life(0)).status, kDone);
    slurm.run({"scontrol", "requeue", "17"});
    EXPECT_EQ(jobs.epilog(life(1)).status, kDone);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 0);
}

TEST_F(SlurmJobs, ALateEpilogOfAnEarlierLifeEndsNothingOfALifeThatRunsHere) {
    slurm.jobs["17"] = {.restarts = 1};
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    ASSERT_EQ(jobs.ensure(life(1)).status, kDone);
    jobs.epilog(life(1));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 0) << "the earlier life is over";
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.1"), 1) << "it begins: the controller says so";
    slurm.steps = "17";
    slurm.is_controller_up = false;
    jobs.epilog(life(1));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.1"), 1) << "it has a step";
    slurm.steps = "NONE";
    set_open("slurm:lab:17.1");
    jobs.epilog(life(1));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.1"), 1) << "its VM runs";
    EXPECT_THAT(vgpud.taken_while_open, IsEmpty());
}

TEST_F(SlurmJobs, TheEndOfALaterLifeEndsItsClaims) {
    slurm.jobs["17"] = {.restarts = 1};
    ASSERT_EQ(jobs.prolog(life(1)).status, kDone);
    slurm.jobs["17"].state = "COMPLETING";
    jobs.epilog(life(1));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.1"), 0);
}

TEST_F(SlurmJobs, AnEpilogWhileVgpudIsAwayDoesNotDrainTheHost) {
    vgpud.is_away = true;
    EXPECT_EQ(jobs.epilog(life(0)).status, kDone);
}

TEST_F(SlurmJobs, QemuGetsADeviceForAVf) {
    EXPECT_EQ(device_of("/run/vgpu/owner/slurm:lab:17.0/0.sock"),
              R"({"driver":"vfio-user-pci","socket":{"type":"unix","path":)"
              R"("/run/vgpu/owner/slurm:lab:17.0/0.sock"}})");
}

}  // namespace
}  // namespace vgpu::slurm
