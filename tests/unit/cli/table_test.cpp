// SPDX-License-Identifier: MIT
//
// -o and --noheadings of every verb that prints a table, and the table itself.
#include "cli/table.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::cli {
namespace {

using ::testing::HasSubstr;
using testing::kMixed;
using ::testing::StartsWith;

class Tables : public testing::Cli {
protected:
    Tables() {
        service.tell(1, "hang", "does not give up the engine");
        service.jobs = {{{"Path", "/org/vgpu1/job/3"},
                         {"Id", std::uint64_t{3}},
                         {"Kind", std::string("apply")},
                         {"State", std::string("failed")},
                         {"Progress", 0.5},
                         {"Step", std::string()},
                         {"Error", std::string("VGPU-312: no")}}};
        service.plan_text = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": false,
            "disruption": "none", "steps": [{"action": "set", "target": "gpu0", "name": "",
            "from": {"max_gap_ms": 60}, "to": {"max_gap_ms": 80}, "disruption": "none",
            "in_use": "", "why": "takes effect at once"}], "gpus": []})";
    }

    const testing::TempTree tree;
    const std::string config = tree.write("config.json", "{}");
};

TEST_F(Tables, ShowTheColumnsThatAreNamedInTheirOrderAndNothingElse) {
    EXPECT_EQ(run({"list", "-o", "NAME,VRAM"}), 0);
    EXPECT_EQ(out.str(),
              "NAME                                                               VRAM\n"
              "train                                                            64 MiB\n"
              "inference-of-the-large-model                                     64 MiB\n"
              "a-name-that-is-as-long-as-names-may-be-sixty-three-characters-x  64 MiB\n");
    EXPECT_EQ(run({"list", "--output", "free,gpu", "--noheadings"}), 0);
    EXPECT_EQ(out.str(), "1744 MiB  gpu0\n1744 MiB  gpu1\n");
    EXPECT_EQ(run({"list", "--vfs", "-o", "STATE,UUID", "--noheadings"}), 0);
    EXPECT_THAT(out.str(), StartsWith("ready  00112233-4455-6677-8899-aabbccddee01\n"));
    EXPECT_EQ(run({"top", "--once", "-o", "vf,ideal,p99-ms"}), 0);
    EXPECT_THAT(out.str(),
                StartsWith("VF        | IDEAL      P99 ms\ngpu0/vf1  #|.........    14.7"));
    EXPECT_EQ(run({"jobs", "-o", "JOB,STEP,ERROR"}), 0);
    EXPECT_EQ(out.str(), "JOB  STEP  ERROR\n  3  -     VGPU-312: no\n");
    EXPECT_EQ(run({"events", "-o", "KIND,TARGET,TEXT", "--noheadings"}), 0);
    EXPECT_EQ(out.str(), "hang  gpu0/vf1  does not give up the engine\n");
    EXPECT_EQ(run({"plan", config, "-o", "TARGET,NAME,CHANGE", "--noheadings"}), 0);
    EXPECT_EQ(out.str(), "gpu0  -  max_gap_ms 60 -> 80\n");
    EXPECT_EQ(run({"assert", config, "-o", "STEP"}), 1);
    EXPECT_EQ(out.str(), "STEP\nset\n");
    EXPECT_EQ(run({"simulate", kMixed, "-o", "VF,WEIGHT", "--noheadings"}), 0);
    EXPECT_THAT(out.str(), StartsWith("inference    100\n"));
}

TEST_F(Tables, BothOfListHaveAColumnOfBoth) {
    EXPECT_EQ(run({"list", "-o", "STATE", "--noheadings"}), 0);
    EXPECT_EQ(out.str(), "ok\npf-lost\n\nready\nready\nready\n");
    EXPECT_EQ(run({"list", "--gpus", "-o", "STATE", "--noheadings"}), 0);
    EXPECT_EQ(out.str(), "ok\npf-lost\n");
}

TEST_F(Tables, WithoutRowsAreEmptyForScripts) {
    service.vfs.clear();
    service.jobs.clear();
    service.events.clear();
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"list", "--vfs"}, {"jobs"}, {"events"}, {"top", "--once"}}) {
        std::vector<std::string> line = words;
        line.emplace_back("--noheadings");
        EXPECT_EQ(run(line), 0) << words.front();
        EXPECT_EQ(out.str(), "") << words.front();
    }
}

TEST_F(Tables, AnUnknownColumnIsRefusedWithTheOnesThatThereAre) {
    for (const char* names : {"NAME,COLOUR", "GPU,NAME", ",", "NAME,,VRAM"})
        EXPECT_EQ(run({"list", "-o", names}), 2) << names;
    EXPECT_EQ(run({"jobs", "-o", "JOB,WHO"}), 2);
    EXPECT_EQ(err.str(),
              "vgpuctl: --output: no table has the columns 'JOB,WHO'; the columns are "
              "JOB, KIND, STATE, DONE, STEP, ERROR\nSee 'vgpuctl help jobs'.\n");
    EXPECT_EQ(run({"list", "--gpus", "-o", "OWNER"}), 2);
    EXPECT_EQ(run({"list", "--json", "-o", "VF"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("excludes"));
    EXPECT_EQ(run({"events", "--follow", "--noheadings"}), 2);
    EXPECT_EQ(service.lists_read, 0);
}

TEST_F(Tables, OnlyWhatIsShownIsAskedFor) {
    EXPECT_EQ(run({"list", "-o", "VF,OWNER"}), 0);
    EXPECT_EQ(service.lists_read, 1) << "no GPU is looked at";
    EXPECT_EQ(service.names_asked, "Target,Owner,OwnerName,OwnerPersistent");
}

TEST_F(Tables, ColumnsOfEveryTableAreInTheHelp) {
    for (const char* verb : {"list", "top", "jobs", "events", "plan", "assert", "simulate"}) {
        EXPECT_EQ(run({"help", verb}), 0);
        EXPECT_THAT(out.str(), HasSubstr("-o, --output COLUMNS")) << verb;
        EXPECT_THAT(out.str(), HasSubstr("--noheadings")) << verb;
    }
    EXPECT_THAT(out.str(), HasSubstr("WAIT-MS, JOBS, P50-MS"));
}

}  // namespace
}  // namespace vgpu::cli
