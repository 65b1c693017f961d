// SPDX-License-Identifier: MIT
#include "daemon/exporter/metrics.h"
#include "daemon/backend/pf_core.h"
#include "daemon/dbus/properties.h"
#include "daemon/exporter/bus_values.h"
#include "tests/unit/exporter/open_metrics.h"
#include "tests/unit/exporter/readings.h"

#include <gmock/gmock.h>
#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace vgpu::exporter {
namespace {

using ::testing::HasSubstr;
using testing::Labels;
using ::testing::Not;
using testing::OpenMetrics;
using testing::some_readings;

const Labels kTrain{{"gpu", "gpu0"}, {"vf", "1"}, {"name", "train"}};
const Labels kInfer{{"gpu", "gpu0"}, {"vf", "2"}, {"name", "infer"}};

std::string open_text(const Readings& readings) {
    return metrics_text(readings, MetricsFormat::OpenMetrics);
}

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

TEST(MetricsOf, AreStrictOpenMetricsWithEveryFamilyOnce) {
    const OpenMetrics text(open_text(some_readings()));
    EXPECT_EQ(text.value("vgpu_up", {}), 1);
    EXPECT_EQ(text.value("vgpu_build", {{"version", "1.2.3"}}), 1);
    EXPECT_EQ(text.value("vgpu_events", {}), 5);
    EXPECT_EQ(text.value("vgpu_state_generation", {}), 7);
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu0"}, {"vgpu_gpu_state", "ok"}}), 1);
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu1"}, {"vgpu_gpu_state", "ok"}}), 0);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", {{"gpu", "gpu0"}}), 2);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", {{"gpu", "gpu1"}}), 0);
    EXPECT_EQ(text.value("vgpu_vf_weight", kTrain), 100);
    EXPECT_EQ(text.families().at("vgpu_vf_service_seconds").type, "counter");
    EXPECT_EQ(text.families().at("vgpu_vf_hangs").samples.size(), 2u);
}

TEST(MetricsOf, HaveBaseUnitsWithoutRounding) {
    Readings readings = some_readings();
    readings.vfs[0]["ServiceNs"] = std::numeric_limits<std::uint64_t>::max();
    readings.vfs[0]["Hangs"] = std::numeric_limits<std::uint64_t>::max();
    readings.vfs[0]["LagNs"] = std::numeric_limits<std::int64_t>::min();
    const std::string text = open_text(readings);
    EXPECT_THAT(text, HasSubstr("name=\"train\"} 18446744073709551615\n"));
    EXPECT_THAT(text, HasSubstr("vf_service_seconds_total{gpu=\"gpu0\",vf=\"1\",name=\"train\"} "
                                "18446744073.709551615\n"));
    EXPECT_THAT(text, HasSubstr("name=\"train\"} -9223372036.854775808\n"));
    const OpenMetrics read(text);
    EXPECT_EQ(read.value("vgpu_vf_service_seconds", kInfer), 0.006);
    EXPECT_EQ(read.value("vgpu_vf_lag_seconds", kInfer), -1.5);
    EXPECT_EQ(read.value("vgpu_vf_reserved_ratio", kInfer), 0.125);
    EXPECT_EQ(read.value("vgpu_gpu_table_cycle_seconds", {{"gpu", "gpu0"}}), 0.048);
    EXPECT_EQ(read.value("vgpu_gpu_table_exact", {{"gpu", "gpu0"}}), 1);
}

TEST(MetricsOf, TellWhoseAVfIs) {
    const auto info = OpenMetrics(open_text(some_readings())).families().at("vgpu_vf");
    ASSERT_EQ(info.samples.size(), 2u);
    const Labels& labels = info.samples.front().labels;
    EXPECT_EQ(labels.at("owner"), "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10");
    EXPECT_EQ(labels.at("owner_name"), "B\u00fcro \"1\"\nC:\\");
    EXPECT_EQ(labels.at("profile"), "");
    EXPECT_EQ(labels.at("description"), "night shift, \"B\u00fcro\"");
    EXPECT_EQ(labels.at("uuid").size(), 36u);
    EXPECT_EQ(info.samples.back().labels.at("owner"), "");
}

TEST(MetricsOf, ALabelMayHaveTenThousandLettersOfAnyKind) {
    std::string name;
    for (int i = 0; i < 2'500; ++i) name += "\u00e9\"\\\n";
    Readings readings = some_readings();
    readings.vfs[1]["OwnerName"] = name;
    const auto info = OpenMetrics(open_text(readings)).families().at("vgpu_vf");
    EXPECT_EQ(info.samples.back().labels.at("owner_name"), name);
}

TEST(MetricsOf, OrphansLeasesAndVfsThatAreNotAsDefinedAreSeries) {
    Readings readings = some_readings();
    readings.vfs[1]["Condition"] = std::string("no VRAM");
    readings.manager["StateMessage"] = std::string("a record was dropped");
    const OpenMetrics text(open_text(readings));
    EXPECT_EQ(text.value("vgpu_vf_orphan", kTrain), 1);
    EXPECT_EQ(text.value("vgpu_vf_orphan", kInfer), 0);
    EXPECT_EQ(text.value("vgpu_vf_condition", kTrain), 0);
    EXPECT_EQ(text.value("vgpu_vf_condition", kInfer), 1);
    EXPECT_EQ(text.value("vgpu_vf_lease_expires_timestamp_seconds", kTrain), 1'700'000'000);
    EXPECT_EQ(text.value("vgpu_vf_lease_expires_timestamp_seconds", kInfer), std::nullopt);
    EXPECT_EQ(text.value("vgpu_state_condition", {}), 1);
}

TEST(MetricsOf, GuardEventsAreShownByKind) {
    const OpenMetrics text(open_text(some_readings()));
    const std::array<double, 4> seen{2, 7, 1, 55};
    for (std::size_t kind = 0; kind < seen.size(); ++kind) {
        Labels labels = kTrain;
        labels["kind"] = daemon::kGuardKinds.at(kind);
        EXPECT_EQ(text.value("vgpu_vf_guard_events", labels), seen.at(kind))
            << daemon::kGuardKinds.at(kind);
    }
}

TEST(MetricsOf, WhatIsNotKnownHasNoSample) {
    const OpenMetrics text(open_text(some_readings()));
    EXPECT_EQ(text.value("vgpu_vf_vram_used_bytes", kTrain), 24 << 20);
    EXPECT_EQ(text.value("vgpu_vf_vram_used_bytes", kInfer), std::nullopt) << "no agent";
    EXPECT_EQ(text.value("vgpu_vf_agent_connected", kInfer), 0);
    EXPECT_EQ(text.value("vgpu_gpu_vram_bytes", {{"gpu", "gpu1"}}), std::nullopt)
        << "never reached";
}

TEST(MetricsOf, AVgpudThatDoesNotAnswerIsASampleAndNothingElse) {
    const Readings down{.problem = "org.freedesktop.DBus.Error.NameHasNoOwner: nobody"};
    EXPECT_EQ(open_text(down),
              "# TYPE vgpu_up gauge\n# HELP vgpu_up 1 if vgpud answers.\nvgpu_up 0\n# EOF\n");
    EXPECT_EQ(metrics_text(down, MetricsFormat::Prometheus),
              "# TYPE vgpu_up gauge\n# HELP vgpu_up 1 if vgpud answers.\nvgpu_up 0\n");
}

TEST(MetricsOf, OfAVgpudWithoutGpusAreADocument) {
    Readings readings = some_readings();
    readings.gpus.clear();
    readings.vfs.clear();
    EXPECT_EQ(OpenMetrics(open_text(readings)).value("vgpu_up", {}), 1);
}

/// The VF and the GPU as vgpud sends them.
Readings as_vgpud_sends() {
    daemon::GpuView gpu;
    gpu.id = "gpu0";
    gpu.state = daemon::GpuState::PfLost;
    vgpu_pf_info info{};
    info.total_vfs = 16;
    info.vram_bytes = 1u << 30;
    info.switch_p99_ns = 97'500;
    gpu.info = daemon::facts_of(info);
    gpu.table = daemon::TableView{.entries = 8};
    gpu.events_lost = 0;
    daemon::VfView vf;
    vf.gpu = "gpu0";
    vf.record.spec.name = "train";
    vf.record.spec.weight = 200;
    vgpu_pf_vf active{};
    active.vf = 1;
    active.state = VGPU_PF_VF_PAUSED;
    active.guard_events[3] = 55;
    active.flrs = 4;
    vf.active = daemon::facts_of(active);
    vf.service_ns = 0;
    vf.timing = daemon::VfTiming{.lag_ns = -3};
    vf.agent.is_connected = true;
    vf.agent.processes = 9;
    Readings readings = some_readings();
    readings.gpus = properties_of(std::vector<Dict>{daemon::dbus::properties_of(gpu)});
    readings.vfs = rows_of(daemon::dbus::columns_of({&vf}, {}));
    return readings;
}

TEST(MetricsOf, AreReadFromWhatVgpudSends) {
    const std::string document = open_text(as_vgpud_sends());
    const OpenMetrics text(document);
    const Labels gpu{{"gpu", "gpu0"}};
    EXPECT_EQ(text.value("vgpu_gpu_state", {{"gpu", "gpu0"}, {"vgpu_gpu_state", "pf-lost"}}), 1);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", gpu), 1);
    EXPECT_EQ(text.value("vgpu_gpu_vfs_possible", gpu), 16);
    EXPECT_EQ(text.value("vgpu_gpu_vram_bytes", gpu), 1u << 30);
    EXPECT_EQ(text.value("vgpu_gpu_switch_p99_seconds", gpu), 97.5e-6);
    Labels state = kTrain, kind = kTrain;
    state["vgpu_vf_state"] = "paused";
    kind["kind"] = "interrupt";
    EXPECT_EQ(text.value("vgpu_vf_state", state), 1);
    EXPECT_EQ(text.value("vgpu_vf_guard_events", kind), 55);
    EXPECT_EQ(text.value("vgpu_vf_weight", kTrain), 200);
    EXPECT_EQ(text.value("vgpu_vf_flrs", kTrain), 4);
    EXPECT_EQ(text.value("vgpu_vf_agent_processes", kTrain), 9);
    EXPECT_THAT(document, HasSubstr("} -0.000000003\n"));
}

TEST(MetricsOf, WhatTheDriverOfAGpuDoesNotKnowAreAbsent) {
    daemon::GpuView gpu;
    gpu.id = "gpu0";
    gpu.info = {.abilities = daemon::Abilities("xe"), .total_vfs = 4};
    daemon::VfView vf;
    vf.gpu = "gpu0";
    vf.active.vf = 1;
    vf.abilities = std::make_shared<const daemon::Abilities>(gpu.info.abilities);
    Readings readings = some_readings();
    readings.gpus = properties_of(std::vector<Dict>{daemon::dbus::properties_of(gpu)});
    readings.vfs = rows_of(daemon::dbus::columns_of({&vf}, {}));
    const OpenMetrics text(open_text(readings));
    for (const char* family : {"vgpu_gpu_vram_bytes", "vgpu_gpu_switches", "vgpu_gpu_table_exact",
                               "vgpu_vf_weight", "vgpu_vf_faults", "vgpu_vf_service_seconds",
                               "vgpu_vf_engine_share_ratio", "vgpu_vf_has_work"})
        EXPECT_TRUE(text.families().at(family).samples.empty()) << family;
    for (const char* family : {"vgpu_gpu_vfs_possible", "vgpu_vf_attached"})
        EXPECT_FALSE(text.families().at(family).samples.empty()) << family;
}

TEST(MetricsOf, EveryFamilyHasASampleOfAVgpudThatKnowsAll) {
    Readings readings = as_vgpud_sends();
    readings.vfs[0]["LeaseExpires"] = std::uint64_t{1};
    const OpenMetrics text(open_text(readings));
    for (const auto& [name, family] : text.families()) EXPECT_FALSE(family.samples.empty()) << name;
}

TEST(MetricsOf, AskVgpudOnlyForPropertiesThatItHas) {
    const auto gpus = daemon::dbus::PropertyFilter::of_gpu(properties_of_gpus());
    ASSERT_TRUE(gpus) << gpus.error().cause;
    EXPECT_TRUE(gpus->includes("TotalVfs"));
    EXPECT_TRUE(gpus->includes("TableEntries"));
    EXPECT_FALSE(gpus->includes("Uapi"));
    const auto vfs = daemon::dbus::PropertyFilter::of_vf(properties_of_vfs());
    ASSERT_TRUE(vfs) << vfs.error().cause;
    EXPECT_TRUE(vfs->includes("OwnerName"));
    EXPECT_TRUE(vfs->includes("Agent"));
    EXPECT_FALSE(vfs->includes("Socket"));
}

TEST(MetricsFormats, AreChosenByWhatAScraperAccepts) {
    EXPECT_EQ(format_for(""), MetricsFormat::OpenMetrics);
    EXPECT_EQ(format_for("*/*"), MetricsFormat::OpenMetrics);
    EXPECT_EQ(format_for("text/plain"), MetricsFormat::Prometheus);
    EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1"),
              MetricsFormat::OpenMetrics)
        << "as Prometheus sends it";
}

TEST(MetricsOf, InTheFormatOfPrometheusHaveTheSameSamplesAndOnlyItsTypes) {
    const auto samples_of = [](const std::string& text) {
        std::set<std::string> samples;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            if (!line.starts_with('#')) samples.insert(line);
        return samples;
    };
    const std::string text = metrics_text(some_readings(), MetricsFormat::Prometheus);
    EXPECT_EQ(samples_of(text), samples_of(open_text(some_readings())));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_vf_hangs_total counter\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_build_info gauge\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE vgpu_vf_state gauge\n"));
    for (const char* foreign : {"# UNIT", "# EOF", "stateset\n", " info\n"})
        EXPECT_THAT(text, Not(HasSubstr(foreign)));
}

TEST(MetricsOf, EveryFamilyIsInTheDocument) {
    const std::string document = text_of_file("docs/monitoring.md");
    const OpenMetrics text(open_text(some_readings()));
    for (const auto& [name, family] : text.families())
        EXPECT_THAT(document, HasSubstr("`" + name + "`"));
}

/// Names of series in the expressions of the dashboard.
std::set<std::string> names_in_dashboard(const nlohmann::json& panels) {
    std::set<std::string> names;
    const std::regex name("vgpu_[a-z0-9_]+");
    for (const auto& vf_control : panels) {
        if (vf_control.contains("panels")) names.merge(names_in_dashboard(vf_control["panels"]));
        if (!vf_control.contains("targets")) continue;
        for (const auto& target : vf_control["targets"]) {
            const auto expression = target.at("expr").get<std::string>();
            for (std::sregex_iterator at(expression.begin(), expression.end(), name), end;
                 at != end; ++at)
                names.insert(at->str());
        }
    }
    return names;
}

TEST(MetricsOf, EverySeriesOfTheDashboardIsServed) {
    const auto dashboard = nlohmann::json::parse(text_of_file("docs/grafana/vgpu.json"));
    const std::map<std::string, std::string> suffixes{
        {"gauge", ""}, {"counter", "_total"}, {"info", "_info"}, {"stateset", ""}};
    std::set<std::string> served;
    const OpenMetrics text(open_text(some_readings()));
    for (const auto& [name, family] : text.families())
        served.insert(name + suffixes.at(family.type));
    served.insert("vgpu_gpu_state");  // also a label
    const auto names = names_in_dashboard(dashboard.at("panels"));
    EXPECT_GE(names.size(), 8u);
    for (const std::string& name : names) EXPECT_TRUE(served.contains(name)) << name;
}

}  // namespace
}  // namespace vgpu::exporter
