// SPDX-License-Identifier: MIT
//
// What Slurm is told of a host, and which claims end, over a fake of Slurm's programs and of vgpud.
#include "daemon/engines/slurm/health.h"

#include "tests/unit/slurm/fake_slurm.h"
#include "tests/unit/slurm/fake_vgpud.h"

#include <gmock/gmock.h>

namespace vgpu::slurm {
namespace {

using ::testing::ElementsAre;
using testing::FakePublished;
using testing::FakeSlurm;
using testing::FakeVgpud;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SlurmHealth : public ::testing::Test {
protected:
    std::vector<std::string> check() { return Health(controller, vgpud, published, "lab").check(); }

    FakeSlurm slurm;
    FakeVgpud vgpud;
    FakePublished published;
    Controller controller{slurm, "n1"};
};

TEST_F(SlurmHealth, AnIdleHostAsksNothingOfTheControllerAfterTheFirstTime) {
    EXPECT_THAT(check(), IsEmpty());
    const int calls = slurm.controller_calls;
    for (int n = 0; n < 10; ++n) EXPECT_THAT(check(), IsEmpty());
    EXPECT_EQ(slurm.controller_calls, calls);
    published.is_old = true;
    check();
    EXPECT_GT(slurm.controller_calls, calls) << "Slurm may have forgotten";
}

TEST_F(SlurmHealth, JobsThatRunAskNothingOfTheController) {
    check();
    slurm.jobs["17"] = {};
    slurm.steps = "17, 17.0";
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    const int calls = slurm.controller_calls;
    check();
    EXPECT_EQ(slurm.controller_calls, calls);
}

TEST_F(SlurmHealth, AForeignClaimLowersWhatIsPublishedAndAJobsClaimDoesNot) {
    vgpud.vfs[0].owner = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
    vgpud.vfs[1].owner = "slurm:lab:17.0";
    vgpud.vfs[2].owner = "slurm:other:17.0";
    slurm.jobs["17"] = {};
    check();
    EXPECT_EQ(slurm.gres, "gpu:tesla:1,vgpu:large:4,vgpu:small:6");
    vgpud.vfs[0].owner.clear();
    check();
    EXPECT_EQ(slurm.gres, "gpu:tesla:1,vgpu:large:4,vgpu:small:7") << "published again";
}

TEST_F(SlurmHealth, AClaimWhoseLeaseIsOverCountsOnce) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    vgpud.vfs[0].is_lease_over = true;
    slurm.jobs["17"] = {};
    check();
    EXPECT_EQ(slurm.gres, "gpu:tesla:1,vgpu:large:4,vgpu:small:8");
}

TEST_F(SlurmHealth, AGpuThatIsLostDrainsTheHostAndOneThatIsBackResumesIt) {
    vgpud.gpu_state = "pf-lost";
    EXPECT_THAT(check(), ElementsAre("drained the host: gpu0 is pf-lost"));
    EXPECT_EQ(slurm.reason, "vgpu: gpu0 is pf-lost");
    EXPECT_EQ(slurm.gres, "gpu:tesla:1,vgpu:large:4,vgpu:small:8") << "what jobs have stays";
    EXPECT_THAT(check(), IsEmpty());
    vgpud.gpu_state = "ok";
    EXPECT_THAT(check(), ElementsAre("resumed the host"));
    EXPECT_EQ(slurm.state, "IDLE");
}

TEST_F(SlurmHealth, AVgpudThatIsAwayDrainsTheHostAndEndsNoClaim) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    vgpud.is_away = true;
    check();
    EXPECT_EQ(slurm.reason, "vgpu: vgpud does not answer");
    vgpud.is_away = false;
    slurm.jobs["17"] = {};
    check();
    EXPECT_EQ(slurm.state, "IDLE");
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
}

TEST_F(SlurmHealth, ADrainOfAnAdministratorIsNeitherResumedNorRenamed) {
    slurm.state = "IDLE+DRAIN";
    slurm.reason = "new memory";
    check();
    EXPECT_EQ(slurm.reason, "new memory");
    vgpud.gpu_state = "pf-lost";
    check();
    EXPECT_EQ(slurm.reason, "new memory");
    slurm.state = "IDLE";
    slurm.reason.clear();
    check();
    EXPECT_EQ(slurm.reason, "vgpu: gpu0 is pf-lost") << "it was resumed while the GPU is lost";
}

TEST_F(SlurmHealth, AHostThatIsBackFreesTheClaimsOfJobsThatAreGone) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    vgpud.vfs[1].owner = "slurm:lab:18.0";
    vgpud.vfs[2].owner = "somebody";
    slurm.jobs["17"] = {.restarts = 1, .hosts = "n2"};
    slurm.jobs["18"] = {};
    EXPECT_THAT(check(), ElementsAre(HasSubstr("published"),
                                     "ended the claims of 'slurm:lab:17.0': its job is over"));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 0);
    EXPECT_EQ(vgpud.owned_by("slurm:lab:18.0"), 1);
    EXPECT_EQ(vgpud.owned_by("somebody"), 1);
}

TEST_F(SlurmHealth, WhileTheControllerDoesNotAnswerNoClaimEnds) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    slurm.is_controller_up = false;
    EXPECT_THAT(check(), ::testing::Contains(HasSubstr("Unable to contact slurm controller")));
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
}

TEST_F(SlurmHealth, AnAnswerInPartOrInOtherWordsEndsNoClaim) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    slurm.jobs["18"] = {};
    slurm.is_queue_cut_off = true;
    check();
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
    slurm.is_queue_cut_off = false;
    slurm.foreign_words = "no jobs\n";
    check();
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
}

TEST_F(SlurmHealth, AStepOfTheJobOnThisHostKeepsItsClaim) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    slurm.steps = "17.0";
    check();
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
}

TEST_F(SlurmHealth, AVmThatHasTheVfOpenKeepsItsClaim) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    vgpud.vfs[0].is_open = true;
    check();
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
    EXPECT_THAT(vgpud.taken_while_open, IsEmpty());
}

TEST_F(SlurmHealth, WhileSlurmdIsAwayNoClaimEnds) {
    vgpud.vfs[0].owner = "slurm:lab:17.0";
    slurm.is_slurmd_up = false;
    check();
    EXPECT_EQ(vgpud.owned_by("slurm:lab:17.0"), 1);
}

TEST_F(SlurmHealth, ADrainThatCouldNotBeToldIsToldLater) {
    vgpud.is_away = true;
    slurm.is_controller_up = false;
    check();
    slurm.is_controller_up = true;
    check();
    EXPECT_EQ(slurm.state, "IDLE+DRAIN");
}

}  // namespace
}  // namespace vgpu::slurm
