// SPDX-License-Identifier: MIT
#include "daemon/service/stats/metrics.h"
#include "tests/unit/daemon/fake_agents.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/open_metrics.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using ::testing::HasSubstr;
using testing::Labels;
using testing::OpenMetrics;
using testing::World;

std::string text_of_file(const std::string& path) {
    std::ifstream file(std::string(VGPU_SOURCE_DIR) + "/" + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(const std::string& text) {
    try {
        const OpenMetrics metrics(text);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

TEST(OpenMetricsReader, RefusesWhatTheFormatForbids) {
    const std::string good =
        "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Time.\n"
        "a_seconds_total{x=\"1\"} 1.5\n# EOF\n";
    EXPECT_EQ(error_of(good), "");
    const std::vector<std::pair<std::string, std::string>> mistakes{
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds{x=\"1\"} 1.5"},
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds_total{x=\"1\"} -1.5"},
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds_total{x=\"1\",x=\"2\"} 1.5"},
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds_total{x=\"\\t\"} 1.5"},
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds_total{x=\"1\"} 1.5s"},
        {"a_seconds_total{x=\"1\"} 1.5", "a_seconds_total{x=\"1\"}  1.5"},
        {"# UNIT a_seconds seconds", "# UNIT a_seconds bytes"},
        {"# TYPE a_seconds counter\n", ""},
        {"# TYPE a_seconds counter", "# TYPE a_seconds number"},
        {"# HELP a_seconds Time.\n", "# HELP a_seconds Time.\n# HELP a_seconds Time.\n"},
        {"# EOF\n", ""},
        {"# EOF\n", "# EOF\n\n"},
        {"# EOF\n", "# EOF"},
        {"# EOF\n", "a_seconds_total{x=\"1\"} 2\n# EOF\n"},
        {"# EOF\n", "# TYPE b gauge\n# HELP b B.\nb 1\n# TYPE a_seconds counter\n# EOF\n"},
        {"# EOF\n", "# TYPE s stateset\n# HELP s S.\ns{t=\"on\"} 1\n# EOF\n"}};
    for (const auto& [what, by] : mistakes) {
        std::string bad = good;
        bad.replace(bad.find(what), what.size(), by);
        EXPECT_NE(error_of(bad), "") << bad;
    }
}

class MetricsOf : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(world.create({{"name", std::string("train")}}));
        ASSERT_TRUE(world.create({{"name", std::string("infer")}}));
        world.pf().give_work(1);
        world.pf().run(1, 6'000'000);
        world.step();
        agents.step();
    }
    [[nodiscard]] OpenMetrics read() {
        world.clock.advance(Metrics::kFresh);
        return OpenMetrics(metrics.text());
    }
    const Labels train{{"gpu", "gpu0"}, {"vf", "1"}, {"name", "train"}};

    World world{{"gpu0", "gpu1"}};
    testing::FakeAgentPort sockets;
    Agents agents{*world.manager, sockets, world.clock};
    EventLog events;
    testing::FakeVmSockets vm_sockets;
    Assignments assignments{*world.manager, vm_sockets, world.clock};
    Metrics metrics{*world.manager, agents, assignments, events, world.clock, "1.2.3"};
};

TEST_F(MetricsOf, AreStrictOpenMetricsWithEveryFamilyOnce) {
    const OpenMetrics text = read();
    EXPECT_EQ(text.value("vgpu_build", {{"version", "1.2.3"}}), 1);
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu0"}, {"vgpu_gpu_state", "ok"}}), 1);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", {{"gpu", "gpu0"}}), 2);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", {{"gpu", "gpu1"}}), 0);
    EXPECT_EQ(text.value("vgpu_vf_vram_provisioned_bytes", train), 64 * FakePf::kMiB);
    EXPECT_DOUBLE_EQ(text.value("vgpu_vf_service_seconds", train).value_or(0), 0.006);
    EXPECT_EQ(text.families().at("vgpu_vf_service_seconds").type, "counter");
    EXPECT_EQ(text.families().at("vgpu_vf_hangs").samples.size(), 2u);
}

TEST_F(MetricsOf, CountersOfThePfCoreAreShownAsTheyAre) {
    world.pf().vfs.at(1).hangs = 3;
    world.pf().vfs.at(1).faults = 18'446'744'073'709'551'615ull;
    world.pf().vfs.at(1).guard_level = 2;
    world.pf().info.whole_resets = 4;
    world.pass(std::chrono::seconds(2));
    const OpenMetrics text = read();
    EXPECT_EQ(text.value("vgpu_vf_hangs", train), 3);
    EXPECT_EQ(text.value("vgpu_vf_guard_level", train), 2);
    EXPECT_EQ(text.value("vgpu_gpu_whole_resets", {{"gpu", "gpu0"}}), 4);
    EXPECT_THAT(metrics.text(), HasSubstr("name=\"train\"} 18446744073709551615\n"));
}

TEST_F(MetricsOf, TellWhoseAVfIs) {
    constexpr const char* kOwner = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
    assignments.set_title(kOwner, "B\u00fcro \"1\"");
    ASSERT_TRUE(world.claim({"gpu0", 1}, kOwner, {}));
    world.pass(std::chrono::seconds(1));
    const auto info = read().families().at("vgpu_vf");
    ASSERT_EQ(info.samples.size(), 2u);
    const Labels& labels = info.samples.front().labels;
    EXPECT_EQ(labels.at("owner"), kOwner);
    EXPECT_EQ(labels.at("owner_name"), "B\u00fcro \"1\"");
    EXPECT_EQ(labels.at("profile"), "");
    EXPECT_EQ(labels.at("uuid").size(), 36u);
    EXPECT_EQ(info.samples.back().labels.at("owner"), "");
}

TEST_F(MetricsOf, OrphansAndVfsThatAreNotAsDefinedAreSeries) {
    EXPECT_EQ(read().value("vgpu_vf_orphan", train), 0);
    EXPECT_EQ(read().value("vgpu_vf_trouble", train), 0);
    ASSERT_TRUE(world.claim({"gpu0", 1}, "a", {{"lease_s", std::uint64_t{1}}}));
    world.pass(std::chrono::seconds(30));
    EXPECT_EQ(read().value("vgpu_vf_orphan", train), 1);
}

TEST_F(MetricsOf, GuardEventsAreShownByKind) {
    const std::array<std::uint64_t, 4> seen{2, 7, 1, 55};
    std::copy(seen.begin(), seen.end(), std::begin(world.pf().vfs.at(1).guard_events));
    world.pass(std::chrono::seconds(2));
    const OpenMetrics text = read();
    for (std::size_t kind = 0; kind < seen.size(); ++kind) {
        Labels labels = train;
        labels["kind"] = kGuardKinds.at(kind);
        EXPECT_EQ(text.value("vgpu_vf_guard_events", labels), static_cast<double>(seen.at(kind)))
            << kGuardKinds.at(kind);
    }
    EXPECT_EQ(text.families().at("vgpu_vf_guard_events").samples.size(), 8u) << "two VFs";
}

TEST_F(MetricsOf, WhatOnlyAnAgentKnowsIsMissingWithoutOne) {
    EXPECT_TRUE(read().families().at("vgpu_vf_vram_used_bytes").samples.empty());
    EXPECT_EQ(read().value("vgpu_vf_agent_connected", train), 0);
}

TEST_F(MetricsOf, ALostGpuIsAStateAndNoHole) {
    world.pf("gpu1").is_there = false;
    world.pass(std::chrono::seconds(2));
    const OpenMetrics text = read();
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu1"}, {"vgpu_gpu_state", "pf-lost"}}), 1);
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu1"}, {"vgpu_gpu_state", "ok"}}), 0);
    EXPECT_EQ(text.value("vgpu_gpu_vram_bytes", {{"gpu", "gpu1"}}), 2048 * FakePf::kMiB);
}

TEST_F(MetricsOf, AreMadeAtMostEveryTenthOfASecond) {
    const std::string first = metrics.text();
    world.pf().vfs.at(1).hangs = 9;
    world.pass(std::chrono::seconds(2));
    EXPECT_NE(metrics.text(), first);
    const std::string second = metrics.text();
    events.add({.gpu = "gpu0", .vf = 0, .kind = "hang", .text = "x"}, 1);
    world.clock.advance(Metrics::kFresh - Nanoseconds{1});
    EXPECT_EQ(metrics.text(), second);
    world.clock.advance(Nanoseconds{1});
    EXPECT_THAT(metrics.text(), HasSubstr("vgpu_events_total 1\n"));
}

TEST(MetricsFormats, AreChosenByWhatAScraperAccepts) {
    EXPECT_EQ(format_for(""), MetricsFormat::OpenMetrics);
    EXPECT_EQ(format_for("*/*"), MetricsFormat::OpenMetrics);
    EXPECT_EQ(format_for("text/plain"), MetricsFormat::Prometheus);
    EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1"),
              MetricsFormat::OpenMetrics)
        << "as Prometheus sends it";
}

TEST_F(MetricsOf, InTheFormatOfPrometheusHaveTheSameSamplesAndOnlyItsTypes) {
    const auto samples_of = [](const std::string& text) {
        std::set<std::string> samples;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            if (!line.starts_with('#')) samples.insert(line);
        return samples;
    };
    const std::string& text = metrics.text(MetricsFormat::Prometheus);
    EXPECT_EQ(samples_of(text), samples_of(metrics.text()));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_vf_hangs_total counter\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_build_info gauge\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_vf_state gauge\n"));
    for (const char* foreign : {"# UNIT", "# EOF", "stateset\n", " info\n"})
        EXPECT_THAT(text, ::testing::Not(HasSubstr(foreign)));
}

TEST_F(MetricsOf, EveryFamilyIsInTheDocument) {
    const std::string document = text_of_file("docs/monitoring.md");
    const auto said = read();
    for (const auto& [name, family] : said.families())
        EXPECT_THAT(document, HasSubstr("`" + name + "`"));
}

/// Names of series in the expressions of the dashboard.
std::set<std::string> names_in_dashboard(const nlohmann::json& panels) {
    std::set<std::string> names;
    const std::regex name("vgpu_[a-z0-9_]+");
    for (const auto& panel : panels) {
        if (panel.contains("panels")) names.merge(names_in_dashboard(panel["panels"]));
        if (!panel.contains("targets")) continue;
        for (const auto& target : panel["targets"]) {
            const auto expression = target.at("expr").get<std::string>();
            for (std::sregex_iterator at(expression.begin(), expression.end(), name), end;
                 at != end; ++at)
                names.insert(at->str());
        }
    }
    return names;
}

TEST_F(MetricsOf, EverySeriesOfTheDashboardIsServed) {
    const auto dashboard = nlohmann::json::parse(text_of_file("docs/grafana/vgpu.json"));
    const std::map<std::string, std::string> suffixes{
        {"gauge", ""}, {"counter", "_total"}, {"info", "_info"}, {"stateset", ""}};
    std::set<std::string> served;
    const auto said = read();
    for (const auto& [name, family] : said.families())
        served.insert(name + suffixes.at(family.type));
    served.insert("vgpu_gpu_state");  // also a label
    const auto names = names_in_dashboard(dashboard.at("panels"));
    EXPECT_GE(names.size(), 8u);
    for (const std::string& name : names) EXPECT_TRUE(served.contains(name)) << name;
}

}  // namespace
}  // namespace vgpu::daemon
