// SPDX-License-Identifier: MIT
#include "daemon/simulator/scenario.h"

#include "daemon/simulator/comparison.h"
#include "tests/unit/scheduler/example_scenarios.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace vgpu::simulator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

bool obeys_schema(const Json& document) {
    const Json json = Json::parse(text_of(kRoot / "schemas/vgpu-scenario.schema.json"));
    valijson::Schema schema;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(json), schema);
    valijson::Validator validator;
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

std::string error_of(const std::string& text) {
    const auto scenario = parse_scenario(text);
    return scenario ? "accepted" : scenario.error();
}

TEST(Scenario, ValidExamplesAreAcceptedByTheSchemaAndTheSimulator) {
    const auto files = example_scenarios("valid");
    EXPECT_GE(files.size(), 4u);
    for (const fs::path& file : files) {
        EXPECT_TRUE(obeys_schema(Json::parse(text_of(file)))) << file;
        EXPECT_EQ(error_of(text_of(file)), "accepted") << file;
    }
}

TEST(Scenario, InvalidExamplesAreRefusedByBoth) {
    const auto files = example_scenarios("invalid");
    EXPECT_GE(files.size(), 3u);
    for (const fs::path& file : files) {
        EXPECT_FALSE(obeys_schema(Json::parse(text_of(file)))) << file;
        EXPECT_NE(error_of(text_of(file)), "accepted") << file;
    }
}

TEST(Scenario, ErrorsNameTheMemberItsValueAndWhatItTakes) {
    EXPECT_THAT(error_of(R"({"vfs": [{"weight": 0}]})"),
                HasSubstr("vfs[0].weight is 0; it must be 1 to 10000"));
    EXPECT_THAT(error_of(R"({"vfs": [{}, {"wieght": 5}]})"),
                HasSubstr("vfs[1] has an unknown member 'wieght'"));
    EXPECT_THAT(error_of(R"({"vfs": [{"work": {"arrivals": "burst"}}]})"),
                HasSubstr("vfs[0].work.arrivals is 'burst'; it must be one of backlogged, bursty"));
    EXPECT_THAT(error_of(R"({"vfs": [{"work": {"arrivals": "bursty"}}]})"),
                HasSubstr("vfs[0].work consists of jobs and needs work_ms and period_ms above 0"));
    EXPECT_THAT(error_of(R"({"vfs": [{}], "changes": [{"at_ms": 1, "vf": "x"}]})"),
                HasSubstr("changes[0].vf is 'x'; no VF has that name"));
    EXPECT_THAT(error_of(R"({"vfs": [{}], "policies": ["best"]})"),
                HasSubstr("policies has \"best\"; known: vgpu, gim, gvt-g"));
    EXPECT_THAT(error_of(R"({"vfs": [{"faults": [{"at_ms": 5}]}]})"),
                HasSubstr("vfs[0].faults[0].kind is missing; it must be one of endless, hang"));
    EXPECT_THAT(error_of(R"({"vfs": [{"faults": [{"kind": "crash"}]}]})"),
                HasSubstr("vfs[0].faults[0].kind is 'crash'; it must be one of endless, hang"));
    EXPECT_THAT(error_of(R"({"vfs": [{"faults": [{"kind": "endless", "stays_out": true}]}]})"),
                HasSubstr("vfs[0].faults[0].stays_out requires kind 'hang'"));
    EXPECT_THAT(error_of(R"({"vfs": [{"joins_later": 1}]})"),
                HasSubstr("vfs[0].joins_later must be true or false"));
    EXPECT_THAT(error_of("{}"), HasSubstr("scenario has no vfs"));
    EXPECT_THAT(error_of("[]"), HasSubstr("scenario is not an object"));
    EXPECT_THAT(error_of("{"), HasSubstr("parse error"));
}

TEST(Scenario, ContractsThatVgpudWouldRefuseAreRefused) {
    EXPECT_THAT(error_of(R"({"vfs": [{}, {"priority_class": "low"}]})"),
                HasSubstr("not admitted: VF 2: higher priority classes may take all"));
    const auto scenario = parse_scenario(R"({"vfs": [{"weight": 1}, {"weight": 10000}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    const auto outcome = simulate(*scenario);
    ASSERT_FALSE(outcome) << "the planner refuses gaps that weights cause";
    EXPECT_THAT(outcome.error(), HasSubstr("with weight 1 of 10001 would be off the engine"));
}

TEST(Scenario, AQuantumOfZeroIsThatOfTheGpu) {
    const auto scenario = parse_scenario(R"({"vfs": [{"quantum_ms": 0}, {}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    for (const VfSetup& vf : scenario->setup.vfs) EXPECT_EQ(vf.policy.request_ns, 6'000'000);
}

TEST(Scenario, VfsOfOneEntryAreCountedAndNamed) {
    const auto scenario = parse_scenario(
        R"({"vfs": [{"name": "web", "count": 3, "quantum_ms": 2}, {"name": "batch"}],
            "changes": [{"at_ms": 5, "vf": "web-2", "what": "leave"}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    ASSERT_EQ(scenario->setup.vfs.size(), 4u);
    EXPECT_EQ(scenario->setup.vfs[1].name, "web-2");
    EXPECT_EQ(scenario->setup.vfs[2].policy.request_ns, 2'000'000);
    EXPECT_EQ(scenario->setup.changes[0].vf, 2u);
    EXPECT_EQ(scenario->policies, policy_names());
}

TEST(Scenario, NamesComeOutPrintableAndChangesFindTheirVfs) {
    const auto scenario = parse_scenario(
        R"({"name": "\u001b]0;x\u0007", "vfs": [{"name": "\u00e9"}, {"name": "\u00fc"}],
            "changes": [{"at_ms": 5, "vf": "\u00fc", "what": "leave"}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    EXPECT_EQ(scenario->setup.name, "?]0;x?");
    EXPECT_EQ(scenario->setup.vfs[0].name, "\xC3\xA9");
    EXPECT_EQ(scenario->setup.vfs[1].name, "\xC3\xBC");
    EXPECT_EQ(scenario->setup.changes[0].vf, 2u);
}

TEST(Scenario, ErrorsQuotePrintably) {
    EXPECT_THAT(error_of(R"({"vfs": [{"\u001b[2J\u009bx": 1}]})"), HasSubstr("'?[2J?x'"));
    EXPECT_THAT(error_of(R"({"vfs": [{"weight": "\u009b\u007f"}]})"), HasSubstr("is \"??\";"));
    EXPECT_THAT(error_of(R"({"vfs": [{"mode": "\u009bx"}]})"), HasSubstr("is '?x';"));
}

TEST(Comparison, SameSeedGivesTheSameFiguresAndEveryPolicyHasARow) {
    const auto scenario = parse_scenario(
        R"({"name": "small", "duration_ms": 500, "seed": 9,
            "vfs": [{"count": 2, "quantum_ms": 2},
                    {"count": 2, "quantum_ms": 2,
                     "work": {"arrivals": "bursty", "work_ms": 0.5, "period_ms": 20}}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    const auto rows = compare(*scenario);
    EXPECT_EQ(json_of(rows), json_of(compare(*scenario)));
    const std::string table = table_of(*scenario, rows);
    for (const std::string& name : policy_names()) EXPECT_THAT(table, HasSubstr(name));
    EXPECT_LE(rows[0].worst_lag_ms, 2.0 + 1e-6);
}

TEST(Comparison, WhatIsShippedIsRefusedMoreVfsThanATableHolds) {
    const auto scenario = parse_scenario(
        R"({"duration_ms": 20, "policies": ["vgpu", "gim"], "vfs": [{"count": 20}]})");
    ASSERT_TRUE(scenario) << scenario.error();
    const auto rows = compare(*scenario);
    EXPECT_THAT(rows[0].refusal, HasSubstr("20 VFs"));
    EXPECT_EQ(rows[1].refusal, "");
    EXPECT_THAT(table_of(*scenario, rows), HasSubstr("refused: 20 VFs"));
}

std::string with_work(const std::string& work) {
    return R"({"duration_ms": 100, "vfs": [{"work": )" + work + "}]}";
}

TEST(Scenario, RecordedJobsAreServedWhenTheyCame) {
    const auto scenario = parse_scenario(
        with_work(R"({"arrivals": "recorded", "jobs": [[10, 2], [10, 1.5], [60, 3]]})"));
    ASSERT_TRUE(scenario) << scenario.error();
    const auto outcome = simulate(*scenario);
    ASSERT_TRUE(outcome) << outcome.error();
    EXPECT_EQ(outcome->figures.vfs[1].jobs, 3u);
    EXPECT_EQ(outcome->figures.vfs[1].service_ns, 6'500'000);
    const auto rows = compare(*scenario);
    EXPECT_TRUE(
        std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.jobs == 3; }));
}

TEST(Scenario, RecordedJobsThatCannotBeSayWhichAndWhy) {
    EXPECT_THAT(error_of(with_work(R"({"jobs": [[1, 1]]})")), HasSubstr("jobs and arrivals"));
    EXPECT_THAT(error_of(with_work(R"({"arrivals": "recorded"})")), HasSubstr("jobs and arrivals"));
    const auto of_jobs = [](const std::string& jobs) {
        return error_of(with_work(R"({"arrivals": "recorded", "jobs": )" + jobs + "}"));
    };
    EXPECT_THAT(of_jobs("[[1, 1], [0, 1]]"), HasSubstr("jobs[1] begins before"));
    EXPECT_THAT(of_jobs("[[1]]"), HasSubstr("jobs[0] is [1]; it must be [at_ms, work_ms]"));
    EXPECT_THAT(of_jobs("[[1, 0]]"), HasSubstr("jobs[0]"));
    EXPECT_THAT(of_jobs("7"), HasSubstr("is not a list"));
    EXPECT_LT(of_jobs("[[\"" + std::string(100'000, 'x') + "\"]]").size(), 500u);
}

}  // namespace
}  // namespace vgpu::simulator
