// SPDX-License-Identifier: MIT
//
// The scheduler's transition table against the diagram at the head of run/machine.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "pf-driver/core/run/internal.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using Arrow = std::tuple<std::string, std::string, std::string>;  // from, input, to

std::set<Arrow> arrows_of_the_table() {
    std::set<Arrow> arrows;
    for (std::uint32_t state = 0; state < VGPU_SCHEDULER_STATES; ++state)
        for (std::uint32_t input = 0; input < RUN_INPUTS; ++input)
            if (const auto* cell = vgpu_pf_run_machine_cell(state, input))
                arrows.emplace(vgpu_pf_run_machine_state_name(state),
                               vgpu_pf_run_machine_input_name(input),
                               vgpu_pf_run_machine_state_name(cell->to));
    return arrows;
}

/// Lines "FROM --INPUT--> TO, --INPUT--> TO," that go on in the next one; "every state" is each.
std::set<Arrow> arrows_of_the_diagram() {
    std::ifstream file(std::string(VGPU_SOURCE_DIR) + "/pf-driver/core/run/machine.c");
    std::set<Arrow> arrows;
    std::string line, from;
    const std::regex first(R"(^ \*   ([A-Z]+|every state) +--)");
    const std::regex arrow(R"(--([A-Z_]+)--> ([A-Z]+))");
    while (std::getline(file, line) && line.find("*/") == std::string::npos) {
        std::smatch match;
        if (std::regex_search(line, match, first)) from = match[1];
        for (std::sregex_iterator it(line.begin(), line.end(), arrow), end; it != end; ++it) {
            for (std::uint32_t state = 0; state < VGPU_SCHEDULER_STATES; ++state) {
                const std::string name = vgpu_pf_run_machine_state_name(state);
                if (from == name || from == "every state") arrows.emplace(name, (*it)[1], (*it)[2]);
            }
        }
    }
    return arrows;
}

TEST(RunMachine, TheDiagramIsTheTable) {
    EXPECT_EQ(arrows_of_the_diagram(), arrows_of_the_table());
    EXPECT_GE(arrows_of_the_table().size(), 20u);
}

TEST(RunMachine, ADumpNamesTheStateTheRunAndTheDecisionThatChoseIt) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 2000}, {2, 2000}}), 0);
    rig.gpu.run_for(50 * kMs);
    std::string text(0x10000, '\0');
    text.resize(vgpu_pf_dump_text(rig.pf.get(), text.data(), 0x10000));
    EXPECT_THAT(text, testing::ContainsRegex("scheduler: RUNNING, in the engine VF[12] \\(slice, "
                                             "decision 7: slice or share, granted 2000000 ns"));
    EXPECT_THAT(text, testing::HasSubstr("mismatches 0"));
}

}  // namespace
}  // namespace vgpu::test
