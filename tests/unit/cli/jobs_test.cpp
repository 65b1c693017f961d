// SPDX-License-Identifier: MIT
#include "tests/unit/cli/cli_fixture.h"

#include <gmock/gmock.h>

namespace vgpu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Properties job(std::uint64_t id, const std::string& kind, const std::string& state, double progress,
               const std::string& step) {
    return {{"Path", "/org/vgpu1/job/" + std::to_string(id)},
            {"Id", id},
            {"Kind", kind},
            {"State", state},
            {"CanCancel", kind == "apply" || kind == "self-test"},
            {"Progress", progress},
            {"Step", step},
            {"Error", std::string()},
            {"ErrorName", std::string()}};
}

class JobsVerb : public testing::Cli {
protected:
    JobsVerb() {
        service.jobs = {job(3, "apply", "failed", 0.5, ""), job(9, "self-test", "done", 1, ""),
                        job(10, "apply", "running", 1.0 / 3, "create gpu0/vf3 '" + name + "'"),
                        job(11, "apply", "waiting", 0, "")};
        service.jobs[0]["Error"] = std::string(
            "VGPU-312: step 2 of 3 (create gpu0/vf3 'c'): 512 MiB of VRAM are missing. What was "
            "done is taken back.");
        service.jobs[0]["ErrorName"] = std::string("org.vgpu1.Error.NoVram");
        service.jobs[1]["Report.ok"] = true;
        service.jobs[1]["Report.text"] = std::string("gfx900: a barrier");
        service.jobs[1]["Report.duration_ms"] = std::uint64_t{812};
    }
    const std::string name = std::string(63, 'n');
};

TEST_F(JobsVerb, ListsWhatIsUnderWayAndWhatCameOfTheOthers) {
    EXPECT_EQ(run({"jobs"}), 0);
    expect_golden("jobs.txt");
    expect_80_columns();
    EXPECT_EQ(run({"jobs", "--json"}), 0);
    expect_golden("jobs.json");
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(JobsVerb, SaysThatThereIsNone) {
    service.jobs.clear();
    EXPECT_EQ(run({"jobs"}), 0);
    EXPECT_EQ(out.str(), "No jobs. Finished jobs are listed for 10 minutes.\n");
    EXPECT_EQ(run({"jobs", "--cancel", "1"}), 3);
    EXPECT_EQ(err.str(), "vgpuctl: there is no job 1; there are no jobs\n");
}

TEST_F(JobsVerb, CancelsTheOneWithTheNumber) {
    EXPECT_EQ(run({"jobs", "--cancel", "10"}), 0);
    EXPECT_EQ(out.str(), "job 10: being cancelled\n");
    EXPECT_THAT(service.asked, ElementsAre("cancel /org/vgpu1/job/10"));
    EXPECT_EQ(run({"jobs", "--cancel", "10", "--json"}), 0);
    EXPECT_THAT(out.str(), HasSubstr(R"("target": "job 10")"));
}

TEST_F(JobsVerb, AnUnknownNumberIsExitCodeThreeAndSaysWhichThereAre) {
    EXPECT_EQ(run({"jobs", "--cancel", "4"}), 3);
    EXPECT_EQ(err.str(), "vgpuctl: there is no job 4; jobs: 3, 9, 10, 11\n");
    EXPECT_EQ(run({"jobs", "--cancel", "apply"}), 2);
    EXPECT_EQ(run({"jobs", "--cancel", "-1"}), 2);
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(JobsVerb, OneThatCannotBeCancelledFails) {
    service.error_name = "org.vgpu1.Error.WrongState";
    EXPECT_EQ(run({"jobs", "--cancel", "3"}), 1);
    EXPECT_THAT(out.str(), IsEmpty());
}

}  // namespace
}  // namespace vgpu::cli
