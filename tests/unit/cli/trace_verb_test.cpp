// SPDX-License-Identifier: MIT
//
// vgpuctl trace. The recordings are of simulations; vgpud is the fake one.
#include "tests/support/hostile_recording.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <gmock/gmock.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace vgpu::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kMixed;

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class TraceVerb : public testing::Cli {
protected:
    /// A recording of a simulation, as a file.
    std::string recorded() {
        const std::string path = tree.file("mixed.trace");
        EXPECT_EQ(run({"simulate", kMixed, "--trace", path}), 0) << err.str();
        out.str("");
        return path;
    }

    testing::TempTree tree;
};

TEST_F(TraceVerb, ShowsWhatARecordingHolds) {
    const std::string file = recorded();
    EXPECT_EQ(run({"trace", "show", file}), 0) << err.str();
    expect_golden("trace.txt");
    expect_80_columns();
    out.str("");
    EXPECT_EQ(run({"trace", "show", file, "--json"}), 0) << err.str();
    expect_golden("trace.json");
}

TEST_F(TraceVerb, ReplaysToTheSameDecisionsWithoutVgpud) {
    const std::string file = recorded();
    EXPECT_EQ(run({"--bus", "unix:path=/nonexistent", "trace", "replay", file}), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("decided as recorded"));
    out.str("");
    EXPECT_EQ(run({"trace", "replay", file, "--json"}), 0) << err.str();
    expect_golden("trace-replay.json");
}

TEST_F(TraceVerb, ExportsForPerfettoPeopleAndTheSimulator) {
    const std::string file = recorded();
    EXPECT_EQ(run({"trace", "export", file}), 0) << err.str();
    EXPECT_TRUE(nlohmann::json::parse(out.str()).contains("traceEvents"));
    out.str("");
    EXPECT_EQ(run({"trace", "export", file, "--format", "svg"}), 0) << err.str();
    EXPECT_THAT(out.str(), HasSubstr("</svg>"));
    const std::string scenario = tree.file("scenario.json");
    EXPECT_EQ(run({"trace", "export", file, "--format", "scenario", "-o", scenario}), 0)
        << err.str();
    EXPECT_EQ(run({"simulate", scenario}), 0) << err.str();
}

TEST_F(TraceVerb, TextsOfARecordingTellATerminalNothing) {
    const std::string file =
        tree.write("hostile.trace", test::with_hostile_texts(content(recorded())));
    const std::vector<std::vector<std::string>> commands{
        {"trace", "show", file},
        {"trace", "show", file, "--json"},
        {"trace", "replay", file},
        {"trace", "replay", file, "--json"},
        {"trace", "export", file},
        {"trace", "export", file, "--format", "svg"},
        {"trace", "export", file, "--format", "scenario"}};
    for (const auto& words : commands) {
        EXPECT_EQ(run(words), 0) << err.str();
        EXPECT_TRUE(test::is_harmless(out.str())) << ::testing::PrintToString(words);
    }
}

TEST_F(TraceVerb, AReplayThatDiffersNamesItsVgpudPrintably) {
    const auto change_digest = [](nlohmann::json& item) {
        constexpr int kTableMade = 7;
        const bool is_table = item.is_array() && item.at(0) == kTableMade;
        const bool is_made = is_table && item.at(item.size() - 2) == true;
        if (is_made) item.back() = item.back().get<std::uint32_t>() ^ 1u;
        return is_made;
    };
    const std::string file = tree.write(
        "other.trace",
        test::with_hostile_texts(test::with_changed_item(content(recorded()), change_digest)));
    EXPECT_EQ(run({"trace", "replay", file}), 1) << err.str();
    EXPECT_THAT(out.str(), HasSubstr(std::string(test::kHostileWordsShown) + "; another release"));
    EXPECT_TRUE(test::is_harmless(out.str()));
}

TEST_F(TraceVerb, ATimeThatNoCalendarHasIsRefused) {
    const std::string file =
        tree.write("late.trace", test::with_unix_time(content(recorded()), std::int64_t{1} << 62));
    EXPECT_EQ(run({"trace", "show", file}), 2);
    EXPECT_THAT(err.str(), HasSubstr("unix_time 4611686018427387904 is not in 0 to "));
    EXPECT_EQ(run({"trace", "show", file, "--json"}), 2);
}

TEST_F(TraceVerb, RecordWritesWhatVgpudKeepsOfTheOnlyGpu) {
    service.gpus.resize(1);
    service.recorded_trace = "what it keeps";
    const std::string file = tree.file("gpu0.trace");
    EXPECT_EQ(run({"trace", "record", file}), 0) << err.str();
    EXPECT_EQ(content(file), "what it keeps");
    EXPECT_EQ(out.str(), file + ": 13 bytes\n");
    out.str("");
    EXPECT_EQ(run({"trace", "record", "-"}), 0) << err.str();
    EXPECT_EQ(out.str(), "what it keeps");
}

TEST_F(TraceVerb, RecordGoesOnFromWhereItWasAndTellsWhatItMissed) {
    service.recorded_trace = "12345";
    service.is_trace_late = true;
    EXPECT_EQ(run({"trace", "record", tree.file("a"), "--gpu", "gpu0", "--seconds", "1"}), 0);
    EXPECT_THAT(service.asked, Contains(HasSubstr("trace /org/vgpu1/gpu/gpu0 5")));
    EXPECT_THAT(err.str(), HasSubstr("dropped"));
    EXPECT_EQ(content(tree.file("a")), "12345");
}

TEST_F(TraceVerb, RecordGoesOnWithTheNextVgpudFromItsBeginning) {
    service.recorded_trace = "12345";
    service.is_trace_anew = true;
    EXPECT_EQ(run({"trace", "record", tree.file("a"), "--gpu", "gpu0", "--seconds", "1"}), 0);
    const std::string asked = "trace /org/vgpu1/gpu/gpu0 ";
    ASSERT_GE(service.asked.size(), 3u);
    service.asked.resize(3);
    EXPECT_THAT(service.asked, ElementsAre(asked + "0", asked + "5", asked + "0"));
    EXPECT_THAT(err.str(), HasSubstr("vgpud was restarted; the recording continues"));
    EXPECT_EQ(content(tree.file("a")), "1234512345");
}

TEST_F(TraceVerb, RecordDoesNotStartAVgpudThatWasStopped) {
    service.recorded_trace = "12345";
    service.running = [] { return false; };
    EXPECT_EQ(run({"trace", "record", tree.file("a"), "--gpu", "gpu0", "--seconds", "1"}), 0);
    EXPECT_THAT(service.asked, ElementsAre("trace /org/vgpu1/gpu/gpu0 0"));
    EXPECT_THAT(err.str(), HasSubstr("vgpud is gone; waiting until it is back"));
    EXPECT_EQ(content(tree.file("a")), "12345");
}

TEST_F(TraceVerb, WhatCannotBeSaysWhy) {
    EXPECT_EQ(run({"trace", "record", tree.file("a")}), 2);
    EXPECT_THAT(err.str(), HasSubstr("there are 2 GPUs; choose one with --gpu"));
    EXPECT_EQ(run({"trace", "record", tree.file("a"), "--gpu", "gpu0/vf1"}), 2);
    EXPECT_THAT(err.str(), HasSubstr("is a VF"));
    EXPECT_EQ(run({"trace", "record", "/nonexistent/a", "--gpu", "gpu0"}), 1);
    EXPECT_THAT(err.str(), HasSubstr("cannot write /nonexistent/a: No such file"));
    EXPECT_EQ(run({"trace", "show", tree.write("b", "no trace")}), 2);
    EXPECT_THAT(err.str(), HasSubstr("byte 0"));
    EXPECT_EQ(run({"trace", "play", "x"}), 2);
}

}  // namespace
}  // namespace vgpu::cli
