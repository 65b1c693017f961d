// SPDX-License-Identifier: MIT
#include "cli/app.h"
#include "cli/format.h"
#include "cli/table.h"
#include "tests/support/hostile_recording.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace vgpu::cli {
namespace {

using ::testing::AnyOf;
using testing::Cli;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMixed;
using ::testing::MatchesRegex;

constexpr const char* kHang = VGPU_SOURCE_DIR "/schemas/examples/valid/vgpu-scenario-hang.json";

struct Golden {
    const char* file;
    std::vector<std::string> words;
};

class CliGolden : public Cli, public ::testing::WithParamInterface<Golden> {};

TEST_P(CliGolden, OutputIsAsWrittenDownAndFits80Columns) {
    EXPECT_EQ(run(GetParam().words), 0) << err.str();
    expect_golden(GetParam().file);
    if (std::string(GetParam().file).ends_with(".txt")) expect_80_columns();
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, CliGolden,
    ::testing::Values(
        Golden{"list.txt", {"list"}}, Golden{"list.json", {"list", "--json"}},
        Golden{"list-gpus.txt", {"list", "--gpus"}},
        Golden{"list-capacity.txt", {"list", "--capacity"}},
        Golden{"list-capacity.json", {"list", "--capacity", "--json"}},
        Golden{"show-vf.txt", {"show", "gpu0/vf1"}},
        Golden{"show-vf.json", {"--json", "show", "gpu0/vf1"}},
        Golden{"show-gpu.txt", {"show", "gpu1"}},
        Golden{"show-gpu.json", {"show", "gpu1", "--json"}}, Golden{"top.txt", {"top", "--once"}},
        Golden{"top.json", {"top", "--once", "--json"}},
        Golden{"create.txt", {"create", "--vram", "64M"}},
        Golden{"create.json", {"create", "--json"}}, Golden{"pause.txt", {"pause", "gpu0/vf2"}},
        Golden{"done.json", {"pause", "gpu0/vf2", "--json"}}, Golden{"version.txt", {"version"}},
        Golden{"self-test.txt", {"self-test", "gpu0/vf1"}},
        Golden{"self-test.json", {"self-test", "gpu0/vf1", "--json"}},
        Golden{"show-vf-no-agent.txt", {"show", "gpu0/vf2"}},
        Golden{"version.json", {"version", "--json"}}, Golden{"help.txt", {"help"}},
        Golden{"claim.txt", {"claim", "gpu0/vf1", "--owner", "slurm:1"}},
        Golden{"claim.json", {"claim", "gpu0/vf1", "--owner", "slurm:1", "--json"}},
        Golden{"simulate.txt", {"simulate", kMixed}},
        Golden{"simulate.json", {"simulate", kMixed, "--json"}},
        Golden{"simulate-hang.txt", {"simulate", kHang}},
        Golden{"compare.txt", {"simulate", "--compare", kMixed}},
        Golden{"compare.json", {"simulate", "--compare", kMixed, "--json"}},
        Golden{"help-claim.txt", {"help", "claim"}}, Golden{"help-create.txt", {"help", "create"}},
        Golden{"help-list.txt", {"help", "list"}}),
    [](const auto& tested) {
        std::string name = tested.param.file;
        for (char& letter : name)
            if (letter == '-' || letter == '.') letter = '_';
        return name;
    });

/// Tables and pages of VFs whose values are as long as they can be.
class CliGoldenWide : public Cli {
protected:
    CliGoldenWide() {
        for (std::uint64_t index = 4; index <= 16; ++index)
            service.vfs.push_back(testing::vf_properties(index, "web-" + std::to_string(index), 0));
        for (Properties& vf : service.vfs) {
            vf["Weight"] = std::uint64_t{10'000};
            vf["MinPct"] = 20.0;
            vf["MaxPct"] = 50.0;
            vf["VramBytes"] = (std::uint64_t{1023} << 20) + (512u << 10);
            vf["Owner"] = "batch:" + std::string(122, 'o');
            vf["Condition"] = std::string(
                "VGPU-312: 512 MiB of VRAM are missing on gpu0. Destroy or resize other VFs, then "
                "wait a second.");
        }
        service.vfs[9]["State"] = std::string("provisioned");
        service.vfs[10]["State"] = std::string("quarantined");
        service.vfs[11]["LagQuanta"] = -123.45;
        service.vfs[12]["WaitP99Ns"] = std::uint64_t{12'345'678'901};
        service.gpus[1]["State"] = std::string("version-mismatch");
        service.gpus[1]["Switches"] = std::uint64_t{123'456'789'012};
        service.gpus[1]["SwitchP99Ns"] = std::uint64_t{9'999'999'999};
    }
    void expect_every_target_whole() const {
        for (const Properties& vf : service.vfs)
            EXPECT_THAT(out.str(), HasSubstr(std::get<std::string>(vf.at("Target")) + " "));
    }
};

TEST_F(CliGoldenWide, TopKeepsTargetsWholeAndLeavesOutWhatMattersLess) {
    EXPECT_EQ(run({"top", "--once"}), 0);
    expect_golden("top-wide.txt");
    expect_80_columns();
    expect_every_target_whole();
}

TEST_F(CliGoldenWide, ListKeepsTargetsWhole) {
    EXPECT_EQ(run({"list"}), 0);
    expect_golden("list-wide.txt");
    expect_80_columns();
    expect_every_target_whole();
}

TEST_F(CliGoldenWide, ShowWrapsWhatIsLongUnderItself) {
    EXPECT_EQ(run({"show", "gpu0/vf4"}), 0);
    expect_golden("show-vf-wide.txt");
    expect_80_columns();
}

TEST_F(Cli, TopOfAVfOnTheEngineHasItsBar) {
    service.vfs.front()["State"] = std::string("running");
    EXPECT_EQ(run({"top", "--once"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("#|........."));
}

TEST_F(Cli, ASimulationNeedsNoVgpud) {
    EXPECT_EQ(run({"--bus", "unix:path=/nonexistent", "simulate", kMixed}), 0) << err.str();
    EXPECT_EQ(used_bus, "");
}

TEST_F(Cli, AScenarioThatCannotBeSaysWhatWhereAndWhy) {
    EXPECT_EQ(run({"simulate", "/nonexistent.json"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("/nonexistent.json: No such file"));
    const testing::TempTree tree;
    EXPECT_EQ(
        run({"simulate", tree.write("many.json", R"({"vfs": [{"count": 17, "quantum_ms": 1}]})")}),
        2);
    EXPECT_THAT(err.str(), HasSubstr("17 VFs"));
    EXPECT_EQ(run({"simulate", tree.write("wrong.json", R"({"vfs": [{"wieght": 3}]})")}), 2);
    EXPECT_THAT(err.str(), HasSubstr("wieght"));
}

TEST_F(Cli, NamesOfAScenarioTellATerminalNothing) {
    const testing::TempTree tree;
    const std::string file =
        tree.write("names.json", R"({"name": "\u001b]0;x\u0007", "duration_ms": 100,
                          "vfs": [{"name": "a\u009b2J\u007f", "quantum_ms": 2}]})");
    EXPECT_EQ(run({"simulate", file}), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("?]0;x?: 1 VFs"));
    EXPECT_THAT(out.str(), HasSubstr("a?2J?"));
    EXPECT_TRUE(test::is_harmless(out.str())) << out.str();
    EXPECT_EQ(run({"simulate", file, "--json"}), 0) << err.str();
    EXPECT_TRUE(test::is_harmless(out.str())) << out.str();
    EXPECT_EQ(run({"simulate", "--compare", file}), 0) << err.str();
    EXPECT_TRUE(test::is_harmless(out.str())) << out.str();
    EXPECT_EQ(run({"simulate", tree.write("wrong.json", R"({"vfs": [{"\u009bx": 3}]})")}), 2);
    EXPECT_THAT(err.str(), HasSubstr("an unknown member '?x'"));
    EXPECT_TRUE(test::is_harmless(err.str())) << err.str();
}

TEST_F(Cli, ListWithoutVfsSaysHowToMakeOne) {
    service.vfs.clear();
    EXPECT_EQ(run({"list", "--vfs"}), 0);
    EXPECT_EQ(out.str(), "No VF is in service; 'vgpuctl create' makes one.\n");
}

TEST_F(Cli, CreatePassesOnlyWhatWasGiven) {
    EXPECT_EQ(run({"create", "--gpu", "gpu0", "--name", "a", "--vram", "1G", "--weight", "7",
                   "--cu-mask", "0xf"}),
              0);
    EXPECT_THAT(service.asked,
                ElementsAre("create gpu0 cu_mask=15 name=a vram_bytes=1073741824 weight=7"));
}

TEST_F(Cli, CreateOfAVfThatIsGoneByThenWasASuccess) {
    service.vfs.clear();
    EXPECT_EQ(run({"create", "--name", "a", "--vram", "64M"}), 0) << err.str();
    EXPECT_EQ(out.str(), "gpu0/vf1 'a' 64 MiB weight -\n");
    service.list_error_name = "org.vgpu1.Error.PfLost";
    EXPECT_EQ(run({"create", "--json"}), 0) << err.str();
    EXPECT_EQ(nlohmann::json::parse(out.str()).at("vf"),
              nlohmann::json({{"path", "/org/vgpu1/gpu/gpu0/vf/1"}, {"target", "gpu0/vf1"}}));
}

TEST_F(Cli, WhatNobodyKnowsOfAGpuIsADashAndAbsentInJson) {
    std::erase_if(service.gpus[1], [](const auto& property) {
        return !std::holds_alternative<std::string>(property.second);
    });
    for (const char* name : {"Platform", "Driver"}) service.gpus[1].erase(name);
    service.gpus[1]["QuantumUs"] = std::uint64_t{6000};
    service.gpus[1]["MaxGapMs"] = std::uint64_t{60};
    EXPECT_EQ(run({"show", "gpu1"}), 0);
    expect_golden("show-gpu-unreached.txt");
    EXPECT_EQ(run({"show", "gpu1", "--json"}), 0);
    expect_golden("show-gpu-unreached.json");
    EXPECT_EQ(run({"list", "--gpus"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("gpu1  pf-lost         -      -    -    -         -  -\n"));
    EXPECT_EQ(run({"top", "--once"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("gpu1: pf-lost, - switches, p50 -, p99 -, - free\n"));
}

TEST_F(Cli, ShowSaysWhatTheDriverOfAGpuNeedsForWhichChanges) {
    for (const auto& [key, needs] : std::map<std::string, std::string>{{"weight", "never"},
                                                                       {"mode", "never"},
                                                                       {"vram_bytes", "vf-idle"},
                                                                       {"scrub", "nothing"},
                                                                       {"quantum_us", "all-idle"}})
        service.gpus[0]["Abilities." + key + ".needs"] = needs;
    service.gpus[0]["Abilities.quantum_us.unit"] = std::uint64_t{1000};
    service.gpus[0]["Abilities.weight.is_approximate"] = true;
    EXPECT_EQ(run({"show", "gpu0"}), 0);
    EXPECT_THAT(out.str(), EndsWith("With the VF idle:  vram_bytes\n"
                                    "With all VFs idle: quantum_us (steps of 1000)\n"
                                    "Not offered:       mode, weight\n"));
    service.gpus[0]["Abilities.weight.needs"] = std::string("nothing");
    EXPECT_EQ(run({"show", "gpu0"}), 0);
    EXPECT_THAT(out.str(), EndsWith("Approximated:      weight\n"
                                    "Not offered:       mode\n"));
    EXPECT_EQ(run({"show", "gpu0", "--json"}), 0);
    const auto abilities = nlohmann::json::parse(out.str()).at("gpu").at("abilities");
    EXPECT_EQ(abilities.at("quantum_us"), (nlohmann::json{{"needs", "all-idle"}, {"unit", 1000}}));
}

TEST_F(Cli, WhatVgpudDoesNotTellOfAVfIsADash) {
    service.vfs = {{{"Path", "/org/vgpu1/gpu/gpu0/vf/1"}, {"Target", "gpu0/vf1"}}};
    EXPECT_EQ(run({"list", "--vfs", "--noheadings"}), 0);
    EXPECT_THAT(out.str(), MatchesRegex("gpu0/vf1( +-){7}\n"));
    EXPECT_EQ(run({"top", "--once", "--noheadings"}), 0);
    EXPECT_THAT(out.str(), MatchesRegex("gpu0/vf1( +-){9}\n"));
    EXPECT_EQ(run({"show", "gpu0/vf1"}), 0);
    std::istringstream page(out.str());
    for (std::string line; std::getline(page, line);)
        EXPECT_THAT(line, AnyOf(EndsWith(" -"), EndsWith(" gpu0/vf1"), EndsWith(" none seen")));
}

TEST_F(Cli, WhatWasNeverMeasuredIsADash) {
    service.vfs.front()["WaitP50Ns"] = service.vfs.front()["WaitP99Ns"] = std::uint64_t{0};
    EXPECT_EQ(run({"top", "--once", "-o", "p50-ms,p99-ms", "--noheadings"}), 0);
    EXPECT_THAT(out.str(), ::testing::StartsWith("   -     -\n"));
    EXPECT_EQ(run({"show", "gpu0/vf1"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("Waits, median:     -\n"));
}

/// Lines of vgpuctl that concern one object, and how often they read one.
TEST_F(Cli, OneObjectIsReadByOneCallAndNoListIs) {
    service.tell(9, "released", "VF 9 is scrubbed and free");
    const std::vector<std::pair<std::vector<std::string>, int>> lines{
        {{"show", "gpu0"}, 1},
        {{"show", "gpu0/vf1", "--json"}, 1},
        {{"create"}, 1},
        {{"resume", "gpu0/vf1", "--clear-quarantine"}, 1},
        {{"events", "gpu0/vf9"}, 1},
        {{"set", "gpu0/vf1", "--weight", "7"}, 0},
        {{"destroy", "gpu0/vf1"}, 0},
        {{"claim", "gpu0/vf1", "--owner", "a"}, 0}};
    for (const auto& [words, reads] : lines) {
        service.objects_read = service.lists_read = 0;
        EXPECT_EQ(run(words), 0) << words.front() << err.str();
        EXPECT_EQ(service.objects_read, reads) << words.front();
        EXPECT_EQ(service.lists_read, 0) << words.front();
    }
}

TEST_F(Cli, AGpuWithoutARunTableHasNoCycle) {
    service.gpus[0]["TableEntries"] = std::uint64_t{0};
    for (const char* name : {"TableCycleUs", "TableExact"}) service.gpus[0].erase(name);
    EXPECT_EQ(run({"show", "gpu0"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("Table entries:     0\nTable cycle:       -\n"
                                     "Table exact:       -\n"));
}

TEST_F(Cli, PathsSayWhatTargetTheyAreOf) {
    EXPECT_EQ(target_of_path("/org/vgpu1/gpu/gpu0"), "gpu0");
    EXPECT_EQ(target_of_path("/org/vgpu1/gpu/gpu0/vf/12"), "gpu0/vf12");
    EXPECT_EQ(target_of_path("/org/vgpu1/gpu/big_2dcard_5f1/vf/3"), "big-card_1/vf3");
    EXPECT_EQ(target_of_path("/org/vgpu1/job/3"), "/org/vgpu1/job/3");
}

TEST_F(Cli, SetGoesToGpuOrVf) {
    EXPECT_EQ(run({"set", "gpu0", "--max-gap-ms", "100"}), 0);
    EXPECT_EQ(run({"set", "gpu0/vf1", "--weight", "5", "--name", "b"}), 0);
    EXPECT_THAT(service.asked, ElementsAre("set_gpu /org/vgpu1/gpu/gpu0 max_gap_ms=100",
                                           "set_vf /org/vgpu1/gpu/gpu0/vf/1 name=b weight=5"));
    EXPECT_EQ(run({"set", "gpu0/vf1", "--description", "for Ana"}), 0);
    EXPECT_EQ(service.asked.back(), "set_vf /org/vgpu1/gpu/gpu0/vf/1 description=for Ana");
    EXPECT_EQ(run({"set", "gpu0/vf1", "--description", "-"}), 0) << "none";
    EXPECT_EQ(service.asked.back(), "set_vf /org/vgpu1/gpu/gpu0/vf/1 description=");
    EXPECT_EQ(run({"set", "gpu0/vf1"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("nothing to set"));
}

TEST_F(Cli, ActionsReachTheRightMethodWithTheirFlags) {
    run({"reset", "gpu0/vf1"});
    run({"pause", "gpu0/vf1", "--force"});
    run({"resume", "gpu0/vf1", "--clear-quarantine"});
    service.vfs.front()["State"] = std::string("quarantined");
    run({"resume", "gpu0/vf1", "--clear-quarantine"});
    run({"stop", "gpu0/vf1"});
    run({"destroy", "gpu0/vf1", "--no-wait"});
    const std::string path = "/org/vgpu1/gpu/gpu0/vf/1";
    std::erase(service.asked, "await /org/vgpu1/job/3");
    EXPECT_THAT(service.asked,
                ElementsAre("job 1 " + path, "act 0 " + path + " force", "job 2 " + path,
                            "job 3 " + path, "act 1 " + path, "job 0 " + path));
}

TEST_F(Cli, ClaimsAndReleasesNameOwnerAndGeneration) {
    const std::string path = "/org/vgpu1/gpu/gpu0/vf/1";
    EXPECT_EQ(
        run({"claim", "gpu0/vf1", "--owner", "slurm:7", "--lease", "60", "--generation", "0"}), 0);
    EXPECT_EQ(run({"release", "gpu0/vf1", "--owner", "slurm:7", "--generation", "5"}), 0);
    EXPECT_EQ(out.str(), "gpu0/vf1: released\n");
    EXPECT_EQ(run({"destroy", "gpu0/vf1", "--owner", "slurm:7"}), 0);
    EXPECT_EQ(run({"reset", "gpu0/vf1", "--owner", "slurm:7", "--force"}), 0);
    std::erase(service.asked, "await /org/vgpu1/job/3");
    EXPECT_THAT(service.asked,
                ElementsAre("claim slurm:7 " + path + " generation=0 lease_s=60",
                            "release slurm:7 5 " + path, "job 0 " + path + " owner=slurm:7",
                            "job 1 " + path + " force owner=slurm:7"));
    EXPECT_EQ(run({"claim", "gpu0/vf1"}), 2);
    EXPECT_EQ(run({"release", "gpu0/vf1", "--owner", "slurm:7"}), 2);
    EXPECT_EQ(run({"release", "gpu0/vf1", "--orphans"}), 2);
    EXPECT_EQ(run({"release"}), 2);
    EXPECT_EQ(run({"release", "gpu0/vf1", "--owner", "a", "--generation", "-1"}), 2);
}

TEST_F(Cli, WhatIsNoNumberIsRefusedInTheWordsThatWereTyped) {
    EXPECT_EQ(run({"claim", "gpu0/vf1", "--owner", "a", "--lease", "60s"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("--lease: must be a whole number, not '60s'"));
    EXPECT_EQ(run({"create", "--weight", "heavy"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("--weight: must be a whole number, not 'heavy'"));
    EXPECT_EQ(run({"create", "--vram", "1.5G"}), 2);
    EXPECT_EQ(err.str(),
              "vgpuctl: --vram: must be a whole number of bytes, or one with K, M, G, T, KiB, MiB, "
              "GiB or TiB, such as 256M or \"256 MiB\", not '1.5G'\n"
              "See 'vgpuctl help create'.\n");
    EXPECT_EQ(run({"create", "--min-pct", "nan"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("--min-pct: must be a number, not 'nan'"));
    EXPECT_EQ(run({"create", "--weight", "99999999999999999999"}), 2);
    EXPECT_EQ(run({"release", "gpu0/vf1", "--owner", "a", "--generation", "-1"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("not '-1'"));
    EXPECT_EQ(run({"top", "--interval-ms", "1e3"}), 2);
    EXPECT_THAT(err.str(),
                HasSubstr("--interval-ms: must be a whole number from 100 to 60000, not '1e3'"));
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Cli, NumbersOfVgpudGoToItAsTheyAreSinceItKnowsTheirRange) {
    EXPECT_EQ(run({"set", "gpu0/vf1", "--weight", "-1", "--min-pct", "12.5", "--max-pct", "50"}),
              0);
    EXPECT_EQ(run({"create", "--weight", "010", "--cu-mask", "0xF0"}), 0);
    EXPECT_THAT(service.asked,
                ElementsAre("set_vf /org/vgpu1/gpu/gpu0/vf/1 max_pct=50 min_pct=12.5 weight=-1",
                            "create  cu_mask=240 weight=10"));
}

TEST_F(Cli, AgentVerbsPassTheirLimitAndTellHowItEnded) {
    EXPECT_EQ(run({"self-test", "gpu0/vf1", "--timeout-ms", "5000"}), 0);
    EXPECT_EQ(run({"quiesce", "gpu0/vf1"}), 0);
    EXPECT_EQ(run({"thaw", "gpu0/vf1"}), 0);
    const std::string path = "/org/vgpu1/gpu/gpu0/vf/1";
    std::erase(service.asked, "await /org/vgpu1/job/3");
    EXPECT_THAT(service.asked, ElementsAre("job 4 " + path + " timeout_ms=5000",
                                           "job 5 " + path + " timeout_ms=60000", "job 6 " + path));
    service.job_end["Report.ok"] = false;
    EXPECT_EQ(run({"self-test", "gpu0/vf1"}), 1);
    EXPECT_EQ(out.str(), "gpu0/vf1: self-test failed: gfx900: a barrier (812 ms)\n");
}

TEST_F(Cli, VerbsForVfsRefuseGpus) {
    EXPECT_EQ(run({"destroy", "gpu0"}), 3);
    EXPECT_EQ(err.str(), "vgpuctl: gpu0 is a GPU; destroy requires a VF, such as gpu0/vf1\n");
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Cli, MistypedVerbIsGuessed) {
    EXPECT_EQ(run({"lsit"}), 2);
    EXPECT_EQ(err.str(),
              "vgpuctl: there is no verb 'lsit'; did you mean 'list'?\nSee 'vgpuctl help'.\n");
    EXPECT_EQ(run({"--bus", "session", "frobnicate"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("'frobnicate'\n"));
    EXPECT_EQ(run({"help", "lsit"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("did you mean 'list'?"));
    EXPECT_EQ(run({"help", "list"}), 0);
    EXPECT_EQ(run({"help", "--", "help"}), 2);
}

TEST_F(Cli, WrongUsageIsExitCodeTwo) {
    EXPECT_EQ(run({}), 2);
    EXPECT_EQ(err.str(), "vgpuctl: name a verb\nSee 'vgpuctl help'.\n");
    EXPECT_EQ(run({"show"}), 2);
    EXPECT_EQ(err.str(), "vgpuctl: TARGET is required\nSee 'vgpuctl help show'.\n");
    EXPECT_EQ(run({"create", "--weight", "heavy"}), 2);
    EXPECT_EQ(run({"create", "--vram", "lots"}), 2);
    EXPECT_EQ(run({"top", "--interval-ms", "1"}), 2);
    EXPECT_EQ(run({"list", "--gpus", "--vfs"}), 2);
    EXPECT_EQ(run({"list", "--capacity", "--vfs"}), 2);
    EXPECT_EQ(run({"list", "--capacity", "-o", "SHARE"}), 2);
    EXPECT_EQ(err.str(),
              "vgpuctl: the table has no such columns; --gpus, --vfs and --capacity choose the "
              "table\n");
    EXPECT_EQ(run({"list", "-o", "TOTAL"}), 2);
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Cli, AnEmptyArgumentIsWrongUsageAndNoOptionThatWasNotGiven) {
    const std::vector<std::vector<std::string>> lines{
        {"apply", "--auto", "4", "--gpu", "", "--yes"},
        {"create", "--gpu", ""},
        {"create", "--vram", ""},
        {"create", "--weight", ""},
        {"export", "--gpu", ""},
        {"export", "--label", ""},
        {"set", "gpu0/vf1", "--weight", "5", "--name", ""},
        {"reset", "gpu0/vf1", "--owner", ""},
        {"destroy", "gpu0/vf1", "--owner=", "--force"},
        {"destroy", ""},
        {"events", ""},
        {""}};
    for (const auto& words : lines) {
        EXPECT_EQ(run(words), 2) << words.front();
        EXPECT_THAT(err.str(), HasSubstr("is a variable not set?")) << words.front();
    }
    EXPECT_EQ(used_bus, "");
    run({"export", "--gpu", ""});
    EXPECT_EQ(err.str(), "vgpuctl: the argument after '--gpu' is empty; is a variable not set?\n");
    run({"destroy", "gpu0/vf1", "--owner=", "--force"});
    EXPECT_EQ(err.str(), "vgpuctl: '--owner=' has no value; is a variable not set?\n");
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(Cli, AnArgumentThatIsNoUtf8IsWrongUsageAndNobodyIsAsked) {
    EXPECT_EQ(run({"show", "caf\xe9"}), 2);
    EXPECT_EQ(err.str(), "vgpuctl: argument \"caf\ufffd\" is not UTF-8 text\n");
    EXPECT_EQ(run({"create", "--name", "\xff"}), 2);
    EXPECT_EQ(used_bus, "");
    EXPECT_EQ(run({"show", "caf\u00e9"}), 3) << "which is nobody's name";
}

TEST_F(Cli, UnknownTargetIsExitCodeThree) {
    EXPECT_EQ(run({"show", "gpu9"}), 3);
    EXPECT_EQ(err.str(), "vgpuctl: VGPU-202: there is no GPU or VF 'gpu9'.\n");
}

TEST_F(Cli, ErrorsOfTheServiceHaveTheirExitCodes) {
    const std::map<std::string, int> codes{{"org.vgpu1.Error.NoVram", 6},
                                           {"org.vgpu1.Error.NotAuthorized", 4},
                                           {"org.vgpu1.Error.PfLost", 7},
                                           {"org.vgpu1.Error.StateReadOnly", 8},
                                           {"org.vgpu1.Error.OutOfRange", 2},
                                           {"org.vgpu1.Error.PfRefused", 1},
                                           {"org.freedesktop.DBus.Error.ServiceUnknown", 5},
                                           {"org.freedesktop.DBus.Error.TimedOut", 5},
                                           {"org.freedesktop.DBus.Error.Spawn.ChildExited", 5},
                                           {"org.freedesktop.systemd1.NoSuchUnit", 5},
                                           {"org.freedesktop.systemd1.UnitMasked", 5}};
    for (const auto& [name, code] : codes) {
        service.error_name = name;
        EXPECT_EQ(run({"create"}), code) << name;
        EXPECT_THAT(err.str(), HasSubstr("as the test wants"));
        EXPECT_THAT(out.str(), IsEmpty());
    }
}

/// As a file on a full disk: what is written is kept until it is to be there.
class FullDisk final : public std::stringbuf {
    int sync() override {
        errno = ENOSPC;
        return -1;
    }
};

TEST_F(Cli, OutputThatCannotBeWrittenIsNoSuccess) {
    const std::vector<std::vector<std::string>> lines{
        {"export"},  {"list", "--json"},
        {"metrics"}, {"help"},
        {"top"},     {"trace", "record", "-", "--gpu", "gpu0", "--follow"}};
    for (const auto& words : lines) {
        FullDisk disk;
        std::ostream full(&disk);
        err.str("");
        const auto connect = [this](const std::string&) {
            return std::make_unique<testing::Lent>(service);
        };
        EXPECT_EQ(run_cli(words, connect, {.out = full, .err = err}), 1) << words.front();
        EXPECT_THAT(err.str(), HasSubstr("vgpuctl: cannot write the output")) << words.front();
    }
    EXPECT_THAT(service.asked, ElementsAre("export", "trace /org/vgpu1/gpu/gpu0 0"));
}

TEST_F(Cli, TopDoesNotStartAVgpudThatWasStoppedButWaitsForIt) {
    int asked = 0;
    service.running = [&] {
        if (++asked < 3) return false;
        service.list_error_name = "org.freedesktop.DBus.Error.NoReply";  // ends top
        return true;
    };
    EXPECT_EQ(run({"top", "--interval-ms", "100"}), 5);
    EXPECT_EQ(service.lists_read, 3) << "two at the start, and one when vgpud is back";
    EXPECT_THAT(err.str(), HasSubstr("vgpuctl: vgpud is gone; waiting until it is back\n"
                                     "vgpuctl: vgpud is back\n"));
}

TEST_F(Cli, BusIsPassedOnAndDefaultsToSystem) {
    run({"list"});
    EXPECT_EQ(used_bus, "system");
    run({"--bus", "unix:path=/x", "list"});
    EXPECT_EQ(used_bus, "unix:path=/x");
    run({"list", "--bus", "session"});
    EXPECT_EQ(used_bus, "session");
}

TEST_F(Cli, ReadOnlyDaemonIsMentioned) {
    service.is_read_only = true;
    EXPECT_EQ(run({"version"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("vgpud is read-only: the state file x is damaged"));
}

TEST(CliFormat, TablesLeaveOutNothingThatFits) {
    const std::string x(40, 'x'), y(20, 'y'), z(20, 'z');
    const std::vector<Column> columns{
        {"X"}, {"Y", Align::Left, false, 2}, {"Z", Align::Left, false, 1}};
    EXPECT_EQ(TableOptions{}.text(columns, {{x, y, "z"}}),
              fmt::format("{:<42}{:<22}Z\n{}  {}  z\n", "X", "Y", x, y));
    EXPECT_EQ(TableOptions{}.text(columns, {{x, y, z}}),
              fmt::format("{:<42}Y\n{}  {}\n", "X", x, y));
    EXPECT_EQ(TableOptions{}.text(columns, {{x + x, y, z}}), "X\n" + x + x + "\n");
    EXPECT_EQ(TableOptions{}.text(columns, {{x + x + x, y, z}}), "X\n" + x + x + x + "\n")
        << "what must not give way stays, whatever that takes";
}

TEST_F(Cli, NamesBeyondAsciiStayAndTakeTheColumnsThatTheyHave) {
    service.vfs.resize(1);
    service.vfs.front()["OwnerName"] = std::string("\u6570\u636e\u5e93\x1b[2J");
    service.vfs.front()["Owner"] = std::string("libvirt:4dea22b3");
    EXPECT_EQ(run({"list", "--vfs"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("libvirt:\u6570\u636e\u5e93?[2J\n"));
    EXPECT_EQ(run({"list", "--json"}), 0);
    EXPECT_EQ(nlohmann::json::parse(out.str()).at("vfs").at(0).at("owner_name"),
              "\u6570\u636e\u5e93\x1b[2J")
        << "as vgpud has it";
    const std::vector<Column> two{{"NAME"}, {"X"}};
    EXPECT_EQ(TableOptions{}.text(two, {{"\u6570\u636e", "1"}, {"B\u00fcro", "2"}}),
              "NAME  X\n\u6570\u636e  1\nB\u00fcro  2\n");
}

TEST(CliFormat, TextIsWrappedAtBlanksWhereThereAreAny) {
    const std::string word(30, 'w');
    EXPECT_EQ(wrapped_text("", 4), "\n");
    EXPECT_EQ(wrapped_text("a  b", 4), "a  b\n");
    EXPECT_EQ(wrapped_text(word + " " + word + "  " + word, 4),
              word + " " + word + "\n    " + word + "\n");
    EXPECT_EQ(wrapped_text(word + " " + word, 4, 20), word + "\n    " + word + "\n");
    EXPECT_EQ(wrapped_text(std::string(100, 'w'), 4),
              std::string(80, 'w') + "\n    " + std::string(20, 'w') + "\n");
    EXPECT_EQ(wrapped_text(std::string(79, 'w') + "\u00e4", 2), std::string(79, 'w') + "\u00e4\n")
        << "a letter of two bytes is one column";
    EXPECT_EQ(wrapped_text(std::string(79, 'w') + "\u6570", 2),
              std::string(79, 'w') + "\n  \u6570\n")
        << "a wide one takes two";
}

}  // namespace
}  // namespace vgpu::cli
