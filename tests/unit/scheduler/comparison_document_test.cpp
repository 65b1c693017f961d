// SPDX-License-Identifier: MIT
//
// The comparison in docs/scheduling.md has been written by tests/bench/compare_schedulers for the
// scenarios there are. Its figures are compared in the bench level: they take a while.
#include "daemon/simulator/comparison.h"
#include "tests/unit/scheduler/example_scenarios.h"

#include <gmock/gmock.h>

#include <sstream>

namespace vgpu::simulator {
namespace {

using ::testing::ElementsAreArray;
using ::testing::StartsWith;

std::string first_word(const std::string& line) {
    return line.substr(0, line.find(' '));
}

/// The tables between the two marks: each the lines up to an empty one.
std::vector<std::vector<std::string>> tables_in_document() {
    std::istringstream text(text_of(kRoot / "docs/scheduling.md"));
    std::vector<std::vector<std::string>> tables;
    std::string line;
    while (std::getline(text, line) && line.find("written by tests/bench/compare") == line.npos)
        continue;
    while (std::getline(text, line) && line != "```") continue;
    tables.emplace_back();
    while (std::getline(text, line) && line != "```") {
        if (line.empty())
            tables.emplace_back();
        else
            tables.back().push_back(line);
    }
    return tables;
}

TEST(ComparisonInTheDocument, HasATableForEachExampleInTheirOrder) {
    const auto files = example_scenarios("valid");
    const auto tables = tables_in_document();
    ASSERT_EQ(tables.size(), files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto scenario = parse_scenario(text_of(files[i]));
        ASSERT_TRUE(scenario) << scenario.error();
        ASSERT_FALSE(tables[i].empty()) << files[i];
        EXPECT_THAT(tables[i].front(), StartsWith(scenario->setup.name + ":")) << files[i];
    }
}

TEST(ComparisonInTheDocument, HasTheColumnsAndPoliciesOfEachScenario) {
    const auto files = example_scenarios("valid");
    const auto tables = tables_in_document();
    ASSERT_EQ(tables.size(), files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto scenario = parse_scenario(text_of(files[i]));
        ASSERT_TRUE(scenario) << scenario.error();
        ASSERT_GE(tables[i].size(), 2u) << files[i];
        EXPECT_EQ(tables[i][1] + "\n", table_of(*scenario, {})) << files[i];
        std::vector<std::string> policies;
        for (std::size_t line = 2; line < tables[i].size(); ++line)
            policies.push_back(first_word(tables[i][line]));
        EXPECT_THAT(policies, ElementsAreArray(scenario->policies)) << files[i];
    }
}

}  // namespace
}  // namespace vgpu::simulator
