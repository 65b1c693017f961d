// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/controller.h"
#include "tests/unit/slurm/fake_slurm.h"

#include <gmock/gmock.h>

namespace vgpu::slurm {
namespace {

using ::testing::ElementsAre;
using testing::FakeSlurm;
using ::testing::HasSubstr;

class Texts : public ::testing::Test {
protected:
    FakeSlurm slurm;
    Controller controller{slurm, "n1"};
};

TEST(HostList, RangesListsAndPaddingAreUnderstood) {
    EXPECT_TRUE(is_in("n1", "n1"));
    EXPECT_TRUE(is_in("n[1-3]", "n3"));
    EXPECT_TRUE(is_in("m2,n[1,4-6]", "n5"));
    EXPECT_TRUE(is_in("n[01-12]", "n07"));
    EXPECT_TRUE(is_in("n[0-15]", "n0"));
    EXPECT_TRUE(is_in("n[0-15]", "n12"));
    EXPECT_TRUE(is_in("n[08-105]", "n09"));
    EXPECT_TRUE(is_in("n[08-105]", "n103"));
    EXPECT_FALSE(is_in("n[0-15]", "n07"));
    EXPECT_FALSE(is_in("n[08-105]", "n9"));
    EXPECT_FALSE(is_in("n[08-105]", "n009"));
    EXPECT_TRUE(is_in("rack[1-2]-n[1-10]", "rack2-n10"));
    EXPECT_FALSE(is_in("n[1-3]", "n4"));
    EXPECT_FALSE(is_in("n[1-3]", "n03"));
    EXPECT_FALSE(is_in("n[01-12]", "n7"));
    EXPECT_FALSE(is_in("n[1-3]", "n1x"));
    EXPECT_FALSE(is_in("n10", "n1"));
    EXPECT_FALSE(is_in("", "n1"));
    EXPECT_FALSE(is_in("n[1-3", "n1"));
}

TEST_F(Texts, AJobHasItsLifeItsUserAndItsVfsOnThisHost) {
    slurm.jobs["17"] = {.restarts = 2, .gres = "vgpu:large(CNT:1),vgpu:small(CNT:2)"};
    const auto job = controller.job("17");
    ASSERT_TRUE(job) << job.error().cause;
    EXPECT_EQ(job->life, 2u);
    EXPECT_EQ(job->user.uid, 1000u);
    EXPECT_EQ(job->user.gid, 100u);
    EXPECT_EQ(job->state, "RUNNING");
    EXPECT_TRUE(job->is_here);
    EXPECT_EQ(job->vfs, (Counts{{"large", 1}, {"small", 2}}));
}

TEST_F(Texts, VfsOnOtherHostsAreNotOfThisHost) {
    const auto job = read_job(
        "JobId=2 JobName=wrap UserId=root(0) GroupId=root(0) JobState=RUNNING Restarts=0 "
        "NodeList=n[1-3] CoreSpec=* JOB_GRES=vgpu:small:4   Nodes=n[2-3] CPU_IDs=63 Mem=0 "
        "GRES=vgpu:small(CNT:1)   Nodes=n1 CPU_IDs=0 Mem=0 GRES=vgpu:small(CNT:2) MinCPUsNode=1\n",
        "2", "n1");
    ASSERT_TRUE(job) << job.error().cause;
    EXPECT_EQ(job->vfs, (Counts{{"small", 2}}));
}

TEST_F(Texts, AJobWithoutVfsHasNone) {
    slurm.jobs["17"] = {.gres = ""};
    EXPECT_EQ(controller.job("17")->vfs, Counts{});
}

TEST_F(Texts, AJobsNameCannotPassForItsUserItsLifeOrItsVfs) {
    for (const char* name :
         {"x UserId=root(0)", "x GroupId=root(0)", "x Restarts=7", "x JobState=R",
          "x NodeList=n1 JOB_GRES=a Nodes=n1 GRES=vgpu:small(CNT:8)", "x MinCPUsNode=1"}) {
        slurm.jobs["17"] = {.gres = "", .name = name};
        const auto job = controller.job("17");
        ASSERT_FALSE(job) << name;
        EXPECT_EQ(job.error().id, ErrorId::BadConfiguration);
    }
    slurm.jobs["17"] = {.gres = "", .name = "x JOB_GRES=a Nodes=n1 GRES=vgpu:small(CNT:8)"};
    EXPECT_EQ(controller.job("17")->vfs, Counts{});
}

TEST_F(Texts, AJobsNameWithLineEndsCannotPassForAnotherJob) {
    slurm.jobs["17"] = {.gres = "", .name = "two\nlines"};
    EXPECT_TRUE(controller.job("17"));
    for (const char* name : {"x\nJobId=17 UserId=root(0)", "x\nJobId=99 UserId=root(0)"}) {
        slurm.jobs["17"] = {.gres = "", .name = name};
        const auto job = controller.job("17");
        ASSERT_FALSE(job) << name;
        EXPECT_EQ(job.error().id, ErrorId::BadConfiguration) << job.error().cause;
    }
}

TEST_F(Texts, ATaskOfAnArrayIsReadAloneAndChangedAlone) {
    slurm.jobs["17"] = {.gres = "", .array = "17", .task = "2"};
    slurm.jobs["18"] = {.restarts = 3, .array = "17", .task = "0"};
    slurm.jobs["170"] = {.restarts = 5};
    const auto job = controller.job("17");
    ASSERT_TRUE(job) << job.error().cause;
    EXPECT_EQ(job->vfs, Counts{});
    EXPECT_EQ(controller.job("18")->life, 3u);
    EXPECT_TRUE(controller.requeue("17"));
    EXPECT_TRUE(controller.hold("17", "why"));
    EXPECT_TRUE(controller.requeue("170"));
    EXPECT_EQ(slurm.changed, (std::vector<std::string>{"17_2", "17_2", "17_2", "170"}));
}

TEST_F(Texts, AnAnswerInOtherWordsIsAnErrorWithTheseWords) {
    slurm.foreign_words = "job 17: running\n";
    for (const std::string& cause :
         {controller.job("17").error().cause, controller.this_node().error().cause,
          controller.jobs_here().error().cause})
        EXPECT_THAT(cause, HasSubstr("job 17: running"));
}

TEST_F(Texts, AnAnswerInPartIsAnError) {
    slurm.jobs["17"] = {};
    slurm.is_queue_cut_off = true;
    EXPECT_THAT(controller.jobs_here().error().cause, HasSubstr("is cut off"));
    EXPECT_FALSE(read_queue("17 0\n"));
    EXPECT_FALSE(read_queue("17 0 R R\n"));
    EXPECT_TRUE(read_queue("")) << "no job is an answer";
}

TEST_F(Texts, AControllerThatDoesNotAnswerIsNamed) {
    slurm.is_controller_up = false;
    EXPECT_THAT(
        controller.job("17").error().cause,
        HasSubstr("'scontrol -o -d show job 17' failed with status 1: slurm_load_node error: "
                  "Unable to contact slurm controller"));
}

TEST(States, AJobRunsIfOneOfItsComponentsRunsOrIsConfigured) {
    for (const char* states : {"R\n", "CF\n", "PD\nR\n"}) EXPECT_TRUE(has_running_state(states));
    for (const char* states : {"PD\n", "CG\n", "RH\n", "CA\n", ""})
        EXPECT_FALSE(has_running_state(states)) << states;
}

TEST(Steps, BothFormsOfTheBatchStepAreRead) {
    EXPECT_THAT(*read_steps("Active Steps             = 2, 2.0, 1\nVersion = 22.05.8\n"),
                ElementsAre("1", "2"));
    EXPECT_THAT(*read_steps("Active Steps             = 17.batch, 18.extern\n"),
                ElementsAre("17", "18"));
    EXPECT_TRUE(read_steps("Active Steps             = NONE\n")->empty());
    EXPECT_FALSE(read_steps("Active Steps = ?\n"));
    EXPECT_FALSE(read_steps("Version = 22.05.8\n"));
}

TEST_F(Texts, AReasonIsReadWithoutItsAuthor) {
    slurm.state = "IDLE+DRAIN";
    slurm.reason = "vgpu: gpu0 is pf-lost";
    const auto node = controller.this_node();
    ASSERT_TRUE(node) << node.error().cause;
    EXPECT_TRUE(node->is_drained);
    EXPECT_EQ(node->reason, "vgpu: gpu0 is pf-lost");
    EXPECT_EQ(node->gres, "gpu:tesla:1,vgpu:large:4,vgpu:small:8");
}

TEST(Cluster, IsInTheConfigurationInAnyCase) {
    EXPECT_EQ(*cluster_in("# ClusterName=no\n clustername = lab # comment\nNodeName=n1\n"), "lab");
    EXPECT_FALSE(cluster_in("NodeName=n1\n"));
}

TEST(Cluster, IsInLowerCaseAsSlurmPassesItToPrograms) {
    EXPECT_EQ(*cluster_in("ClusterName=Lab\n"), "lab");
    EXPECT_EQ(*cluster_in("BatchStartTimeout       = 10 sec\nClusterName             = Lab\n"),
              "lab");
}

}  // namespace
}  // namespace vgpu::slurm
