// SPDX-License-Identifier: MIT
//
// plan, apply, assert and export over a FakeService whose plan has a step of every kind.
#include "cli/vf_options.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <gmock/gmock.h>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace vgpu::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kPlan = R"({
  "schema": "vgpu-plan-1", "label": "day", "is_empty": false, "disruption": "vf-loss",
  "steps": [
    {"action": "keep", "target": "gpu0/vf1", "name": "web-1", "from": {}, "to": {},
     "disruption": "none", "needs": "nothing", "in_use": "", "blocked": "",
     "why": "it matches the configuration"},
    {"action": "set", "target": "gpu0", "name": "", "from": {"max_gap_ms": 60},
     "to": {"max_gap_ms": 80}, "disruption": "none", "needs": "nothing", "in_use": "",
     "blocked": "",
     "why": "takes effect with the next run table"},
    {"action": "rename", "target": "gpu0/vf2", "name": "old", "from": {"name": "old"},
     "to": {"name": "web-2"}, "disruption": "none", "needs": "nothing", "in_use": "", "blocked": "",
     "why": "the VF has its former name"},
    {"action": "set", "target": "gpu0/vf2", "name": "old",
     "from": {"weight": 100, "quantum_us": 0, "profile": "small"},
     "to": {"weight": 300, "quantum_us": 2000, "profile": "large"}, "disruption": "none",
     "needs": "nothing",
     "in_use": "", "blocked": "", "why": "takes effect with the next run table"},
    {"action": "create", "target": "gpu0/vf4", "name": "train-1", "from": {},
     "to": {"name": "train-1", "weight": 300, "quantum_us": 0, "profile": "large",
            "vram_bytes": 67108864, "cu_mask": 255, "doorbell_pages": 0, "preempt_timeout_us": 0,
            "full_access_timeout_ms": 0, "exclusive_full_access": false, "guard_flr": 0,
            "guard_exclusive": 0, "guard_exclusive_timeout": 0, "guard_interrupt": 0},
     "disruption": "none", "needs": "nothing", "in_use": "", "blocked": "",
     "why": "no VF has this name"},
    {"action": "resize", "target": "gpu0/vf2", "name": "old",
     "from": {"vram_bytes": 33554432, "guard_flr": 0},
     "to": {"vram_bytes": 67108864, "guard_flr": 4294967295},
     "disruption": "vf-restart", "needs": "vf-idle", "in_use": "a client has it open",
     "blocked": "",
     "why": "VRAM, security can only change while its driver is unloaded"},
    {"action": "destroy", "target": "gpu0/vf3", "name": "batch",
     "from": {"name": "batch", "weight": 100, "quantum_us": 0, "profile": "",
              "vram_bytes": 33554432, "cu_mask": 0, "doorbell_pages": 0, "preempt_timeout_us": 0,
              "full_access_timeout_ms": 0, "exclusive_full_access": false, "guard_flr": 0,
              "guard_exclusive": 0, "guard_exclusive_timeout": 0, "guard_interrupt": 0},
     "to": {}, "disruption": "vf-loss", "needs": "vf-idle", "in_use": "", "blocked": "",
     "why": "the configuration does not name it"}],
  "gpus": [{"gpu": "gpu0", "vram_bytes": 2130706432, "pf_vram_bytes": 16777216,
            "planned_vram_bytes": 201326592, "compute_units": 8, "doorbell_pages": 512}]
})";

constexpr const char* kEmptyPlan = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": true,
  "disruption": "none", "steps": [{"action": "keep", "target": "gpu0/vf1", "name": "web-1",
  "from": {}, "to": {}, "disruption": "none", "needs": "nothing", "in_use": "", "blocked": "",
  "why": "it matches the configuration"}], "gpus": []})";

constexpr const char* kAbsentPlan = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": true,
  "disruption": "none", "steps": [{"action": "keep", "target": "gpu0/vf1", "name": "web-1",
  "from": {}, "to": {}, "disruption": "none", "needs": "nothing", "in_use": "", "blocked": "",
  "condition": "512 MiB are missing",
  "why": "its definition matches the configuration, but the VF is not in service"}], "gpus": []})";

constexpr const char* kHarmlessPlan = R"({"schema": "vgpu-plan-1", "label": "day",
  "is_empty": false, "disruption": "none", "steps": [{"action": "set", "target": "gpu0/vf1",
  "name": "web-1", "from": {"weight": 100}, "to": {"weight": 200}, "disruption": "none",
  "needs": "nothing", "in_use": "", "blocked": "",
  "why": "takes effect with the next run table"}], "gpus": []})";

/// Of a GPU whose driver disables all VFs to enable more.
constexpr const char* kEnablePlan = R"json({"schema": "vgpu-plan-1", "label": "vms",
  "is_empty": false, "disruption": "vf-restart", "steps": [
    {"action": "enable", "target": "b50", "name": "", "from": {"vfs": 3}, "to": {"vfs": 4},
     "disruption": "vf-restart", "needs": "all-idle",
     "in_use": "b50/vf2 ('vm-2': a client has it open)",
     "blocked": "b50/vf2 ('vm-2': a client has it open)",
     "why": "3 -> 4: all VFs are disabled and enabled again, and lose the content of their VRAM"},
    {"action": "create", "target": "b50/vf4", "name": "vm-4", "from": {},
     "to": {"name": "vm-4", "weight": 100, "quantum_us": 0, "profile": "vm",
            "vram_bytes": 4294967296}, "disruption": "none", "needs": "nothing", "in_use": "",
     "blocked": "", "why": "no VF has this name",
     "contract": {"min_pct": "approximated", "preempt_timeout_ms": "kept"}}],
  "gpus": [{"gpu": "b50", "vram_bytes": 17179869184, "pf_vram_bytes": 0,
            "planned_vram_bytes": 4294967296,
            "quanta": [{"name": "vm-4", "quantum_us": 16000, "worst_wait_us": 41500}]}]
})json";

class ConfigurationVerbs : public testing::Cli {
protected:
    ConfigurationVerbs() { service.plan_text = kPlan; }

    const std::string file =
        std::string(VGPU_SOURCE_DIR) + "/schemas/examples/valid/vgpu-config-two-sizes.json";
    const std::string bytes = std::to_string(std::filesystem::file_size(file)) + " bytes";
};

TEST_F(ConfigurationVerbs, PlanTellsWhoIsInTheWayOfMoreVfsAndWhatIsApproximated) {
    service.plan_text = kEnablePlan;
    EXPECT_EQ(run({"plan", file}), 0);
    expect_golden("plan-enable.txt");
    EXPECT_EQ(run({"plan", file, "--json"}), 0);
    expect_golden("plan-enable.json");
}

TEST_F(ConfigurationVerbs, PlanShowsEveryStepWithItsCost) {
    EXPECT_EQ(run({"plan", file, "--label", "day"}), 0);
    expect_golden("plan.txt");
    expect_80_columns();
    EXPECT_THAT(service.asked, ElementsAre("plan " + bytes + " label=day"));
    EXPECT_EQ(run({"plan", file, "--json"}), 0);
    expect_golden("plan.json");
}

/// Reads `text` as standard input for as long as it lives.
class TypedIn {
public:
    explicit TypedIn(const std::string& text) : text_(text), old_(std::cin.rdbuf(text_.rdbuf())) {}
    ~TypedIn() { std::cin.rdbuf(old_); }
    TypedIn(const TypedIn&) = delete;
    TypedIn& operator=(const TypedIn&) = delete;

private:
    std::istringstream text_;
    std::streambuf* old_;
};

TEST_F(ConfigurationVerbs, TheFileMayBeAnOptionAndStandardInput) {
    service.plan_text = kHarmlessPlan;
    for (const char* verb : {"plan", "apply", "assert"})
        for (const std::vector<std::string>& words :
             {std::vector<std::string>{"-"}, {"-f", "-"}, {"--file", "-"}, {"--file=-"}}) {
            service.asked.clear();
            const TypedIn input("{ 16 letters }\n ");
            std::vector<std::string> line{verb};
            line.insert(line.end(), words.begin(), words.end());
            run(line);
            EXPECT_THAT(service.asked, Contains("plan 16 bytes")) << verb << " " << words.front();
        }
    service.asked.clear();
    EXPECT_EQ(run({"plan", "-f", file, "--label", "day"}), 0);
    EXPECT_THAT(service.asked, ElementsAre("plan " + bytes + " label=day"));
    EXPECT_EQ(run({"help", "plan"}), 0);
    expect_golden("help-plan.txt");
}

TEST_F(ConfigurationVerbs, WhatExportPrintsAsJsonIsTakenAsItsText) {
    service.plan_text = kHarmlessPlan;
    ASSERT_EQ(run({"export"}), 0);
    const auto config = nlohmann::ordered_json::parse(out.str());
    ASSERT_EQ(run({"export", "--json"}), 0);
    const std::string document = out.str();
    for (const char* verb : {"plan", "apply", "assert"}) {
        service.config_given.clear();
        const TypedIn input(document);
        run({verb, "-f", "-"});
        EXPECT_EQ(nlohmann::ordered_json::parse(service.config_given), config) << verb;
    }
}

TEST_F(ConfigurationVerbs, WhatIsNoExportIsPassedOnAsItWasRead) {
    service.plan_text = kHarmlessPlan;
    for (const std::string text :
         {R"({"schema": "vgpuctl-plan-1", "config": {}})", R"({"schema": "vgpuctl-export-1"})",
          R"({"schema": 1, "config": {}})", "{\"configs\": {} /* ours */ }\n", "[1]", "{"}) {
        const TypedIn input(text);
        run({"plan", "-f", "-"});
        EXPECT_EQ(service.config_given, text);
    }
}

TEST_F(ConfigurationVerbs, PlanOfWhatIsThereSaysSo) {
    service.plan_text = kEmptyPlan;
    EXPECT_EQ(run({"plan", file}), 0);
    expect_golden("plan-empty.txt");
}

TEST_F(ConfigurationVerbs, AutoIsPlannedFromVgpudsOwnConfiguration) {
    EXPECT_EQ(run({"plan", "--auto", "4", "--gpu", "gpu1"}), 0);
    EXPECT_THAT(service.asked, ElementsAre("auto gpu=gpu1",
                                           AllOf(StartsWith("plan "), HasSubstr(" label=auto-4"))));
    service.asked.clear();
    EXPECT_EQ(run({"plan", "--auto", "4", "--even"}), 0);
    EXPECT_THAT(service.asked,
                ElementsAre("auto", AllOf(StartsWith("plan "), HasSubstr(" label=even-4"))));
}

TEST_F(ConfigurationVerbs, WrongUsageIsExitCodeTwo) {
    EXPECT_EQ(run({"plan"}), 2);
    EXPECT_THAT(err.str(),
                HasSubstr("name a FILE (or -f FILE), '-' for standard input, or --auto N"));
    EXPECT_EQ(run({"plan", "/nowhere/config.json"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("cannot read /nowhere/config.json: No such file"));
    const testing::TempTree tree;
    EXPECT_EQ(run({"plan", tree.path()}), 2);
    EXPECT_THAT(err.str(), HasSubstr("cannot read " + tree.path() + ": Is a directory"));
    EXPECT_EQ(run({"plan", file, "--auto", "4"}), 2);
    EXPECT_EQ(run({"plan", "-f", file, "--auto", "4"}), 2);
    EXPECT_EQ(run({"plan", file, "-f", file}), 2) << "one document, named once";
    EXPECT_THAT(err.str(), HasSubstr("FILE excludes --file"));
    EXPECT_EQ(run({"plan", "-f"}), 2);
    EXPECT_EQ(run({"plan", "--auto", "3"}), 2);
    EXPECT_EQ(run({"plan", file, "--gpu", "gpu0"}), 2);
    EXPECT_EQ(run({"plan", file, "--even"}), 2);
    EXPECT_EQ(run({"export", "--auto", "--label", "x"}), 2);
    EXPECT_THAT(service.asked, IsEmpty());
}

TEST_F(ConfigurationVerbs, APlanOfAnotherReleaseIsNotGuessedAt) {
    service.plan_text = R"({"schema": "vgpu-plan-9"})";
    EXPECT_EQ(run({"plan", file}), 1);
    EXPECT_THAT(err.str(), HasSubstr("of the same release"));
}

TEST_F(ConfigurationVerbs, AssertIsOneWhileAVfIsOnlyDefined) {
    service.plan_text = kAbsentPlan;
    EXPECT_EQ(run({"assert", file}), 1);
    EXPECT_THAT(out.str(), HasSubstr("gpu0/vf1 'web-1': not in service: 512 MiB are missing"));
    EXPECT_THAT(out.str(), HasSubstr("every definition matches the configuration"));
    EXPECT_EQ(run({"assert", file, "--json"}), 1);
    EXPECT_THAT(out.str(), HasSubstr(R"("holds": false)"));
}

TEST_F(ConfigurationVerbs, AssertIsZeroOnlyIfNothingIsToBeDone) {
    service.plan_text = kEmptyPlan;
    EXPECT_EQ(run({"assert", file}), 0);
    EXPECT_EQ(out.str(), "configuration 'day' holds\n");
    EXPECT_EQ(run({"assert", file, "--json"}), 0);
    expect_golden("assert.json");
    service.plan_text = kPlan;
    EXPECT_EQ(run({"assert", file}), 1);
    EXPECT_THAT(out.str(), HasSubstr("destroy"));
    EXPECT_THAT(service.asked, Not(Contains(StartsWith("apply"))));
}

TEST_F(ConfigurationVerbs, ApplyThatWouldLoseDataWantsYes) {
    EXPECT_EQ(run({"apply", file}), 1);
    EXPECT_THAT(err.str(), HasSubstr("VFs would lose the content of their VRAM (vf-loss)"));
    EXPECT_THAT(service.asked, Not(Contains(StartsWith("apply"))));
    EXPECT_EQ(run({"apply", file, "--yes", "--force", "--label", "day"}), 0);
    EXPECT_THAT(service.asked, Contains("apply " + bytes + " disruption=vf-loss force label=day"));
    EXPECT_THAT(service.asked, Contains("await /org/vgpu1/job/3"));
    EXPECT_THAT(out.str(), HasSubstr("configuration 'day' is applied\n"));
}

TEST_F(ConfigurationVerbs, ApplyThatStopsForWantOfYesPrintsItsDocument) {
    EXPECT_EQ(run({"apply", file, "--json"}), 1);
    const auto document = nlohmann::json::parse(out.str());
    EXPECT_EQ(document.at("result"), "refused");
    EXPECT_EQ(document.at("job_id"), 0);
    EXPECT_FALSE(document.at("plan").at("steps").empty());
    EXPECT_THAT(err.str(), HasSubstr("--yes"));
}

TEST_F(ConfigurationVerbs, ApplyThatLosesNothingNeedsNoWord) {
    service.plan_text = kHarmlessPlan;
    EXPECT_EQ(run({"apply", file}), 0);
    expect_golden("apply.txt");
    EXPECT_EQ(run({"apply", file, "--json"}), 0);
    expect_golden("apply.json");
    EXPECT_EQ(run({"apply", file, "--no-wait"}), 0);
    EXPECT_THAT(out.str(),
                EndsWith("job 3: 'vgpuctl jobs' shows it, 'vgpuctl jobs --cancel 3' cancels it\n"
                         "/org/vgpu1/job/3\n"));
    EXPECT_EQ(run({"apply", file, "--no-wait", "--json"}), 0);
    EXPECT_EQ(nlohmann::json::parse(out.str()).at("job_id"), 3);
}

TEST_F(ConfigurationVerbs, AnInterruptedApplySaysHowToCancelTheJobThatContinues) {
    service.plan_text = kHarmlessPlan;
    service.is_interrupted = true;
    EXPECT_EQ(run({"apply", file}), 130);
    EXPECT_EQ(err.str(),
              "vgpuctl: job 3 (apply) continues; 'vgpuctl jobs --cancel 3' cancels it\n");
    EXPECT_EQ(run({"apply", file, "--json"}), 130);
    EXPECT_EQ(nlohmann::json::parse(out.str()).at("name"), "vgpuctl.Interrupted");
}

TEST_F(ConfigurationVerbs, ApplyOfWhatIsThereStartsNoJob) {
    service.plan_text = kEmptyPlan;
    EXPECT_EQ(run({"apply", file}), 0);
    EXPECT_THAT(out.str(), HasSubstr("Nothing to do: everything matches the configuration.\n"));
    EXPECT_THAT(service.asked, Not(Contains(StartsWith("apply"))));
}

TEST_F(ConfigurationVerbs, AFailedJobHasTheExitCodeOfItsError) {
    service.plan_text = kHarmlessPlan;
    service.job_end = {{"State", std::string("failed")},
                       {"Error", std::string("VGPU-302: step 2 of 3: no. Do this.")},
                       {"ErrorName", std::string("org.vgpu1.Error.NoVram")}};
    EXPECT_EQ(run({"apply", file}), 6);
    EXPECT_EQ(err.str(), "vgpuctl: VGPU-302: step 2 of 3: no. Do this.\n");
    EXPECT_EQ(run({"apply", file, "--json"}), 6);
    EXPECT_THAT(out.str(), HasSubstr("\"result\": \"failed\""));
}

TEST_F(ConfigurationVerbs, ProgressIsDrawnOnATerminalOnly) {
    service.plan_text = kHarmlessPlan;
    EXPECT_EQ(run({"apply", file}), 0);
    EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
    is_terminal = true;
    EXPECT_EQ(run({"apply", file}), 0);
    EXPECT_THAT(out.str(), HasSubstr("\r\x1b[K[##########          ]  50 % create gpu0/vf3 'c'"));
    EXPECT_EQ(run({"apply", file, "--json"}), 0);
    EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
}

TEST_F(ConfigurationVerbs, WhatIsNoUtf8IsRefusedBeforeABusSeesIt) {
    const TypedIn latin_1("{\"caf\xe9\": 1}");
    EXPECT_EQ(run({"plan", "-"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("standard input is not UTF-8 text"));
    EXPECT_THAT(service.asked, Not(Contains(StartsWith("plan"))));
}

TEST_F(ConfigurationVerbs, ADocumentThatIsNestedTooDeepIsRefusedWithThePlace) {
    const std::string deep(60'000, '[');
    for (const std::string& text : {deep, R"({"schema":"vgpuctl-export-1","config":)" + deep +
                                              std::string(60'000, ']') + "}"})
        for (const char* verb : {"plan", "apply", "assert"}) {
            const TypedIn input(text);
            EXPECT_EQ(run({verb, "-"}), 2) << verb;
            EXPECT_THAT(err.str(), HasSubstr("standard input: line 1, column "));
            EXPECT_THAT(err.str(), HasSubstr("nested more than 64 deep"));
        }
    EXPECT_THAT(service.asked, IsEmpty());
    const TypedIn input(deep);
    EXPECT_EQ(run({"simulate", "-"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("line 1, column 65: lists and objects are nested"));
}

TEST_F(ConfigurationVerbs, ExportPrintsADocumentThatCanBeReadAgain) {
    EXPECT_EQ(run({"export", "--gpu", "gpu0", "--label", "now"}), 0);
    EXPECT_EQ(out.str(), "{\"profiles\": {}, \"configs\": {\"current\": []}}\n");
    EXPECT_EQ(run({"export", "--json"}), 0);
    expect_golden("export.json");
    EXPECT_EQ(run({"export", "--auto"}), 0);
    EXPECT_THAT(service.asked, ElementsAre("export gpu=gpu0 label=now", "export", "auto"));
}

TEST(QosText, AGangIsItsSlotAndNothingElse) {
    const Properties vf{{"MinPct", 30.0},
                        {"MaxPct", 100.0},
                        {"LatencyMs", 50.0},
                        {"PhaseMs", 15.2},
                        {"Mode", std::string("gang")},
                        {"PriorityClass", std::string("high")}};
    EXPECT_EQ(short_qos_text(vf), "30G");
    EXPECT_EQ(reservation_text(vf), "30 % every 50 ms, in a slot from 15.2 ms on");
}

}  // namespace
}  // namespace vgpu::cli
