// SPDX-License-Identifier: MIT
//
// vgpu-exporter as a program against the real vgpud: scraped by curl and by Debian's Prometheus.
#include "daemon/exporter/listen.h"
#include "tests/scenario/dbus/exporter_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

using exporter::testing::Labels;
using exporter::testing::OpenMetrics;
using testing::body_of;
using testing::curl;
using testing::Exporter;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

const Labels kTrain{{"gpu", "gpu0"}, {"vf", "1"}, {"name", "train"}};

/// A program of Debian's package prometheus; "" if it is not there.
std::string program_of_prometheus(const std::string& name) {
    for (const std::string& path : {"/usr/bin/" + name, test::build_file("../tools/" + name)})
        if (fs::exists(path)) return path;
    return "";
}

TEST_F(Exporter, ServesTheStrictTextThatTheVerbPrints) {
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    start_exporter();
    const auto scraped = curl(url + "/metrics");
    EXPECT_THAT(scraped.out, StartsWith("HTTP/1.0 200 OK\r\n"));
    EXPECT_THAT(scraped.out, HasSubstr("application/openmetrics-text; version=1.0.0"));
    const OpenMetrics text(body_of(scraped));
    EXPECT_EQ(text.value("vgpu_up", {}), 1);
    EXPECT_EQ(text.value("vgpu_vf_vram_provisioned_bytes", kTrain), 64 * FakePf::kMiB);
    EXPECT_EQ(text.value("vgpu_gpu_vfs", {{"gpu", "gpu0"}}), 1);
    const auto newest = ctl_json({"events", "--limit", "1"});
    EXPECT_EQ(text.value("vgpu_events", {}), newest.at("seq").get<double>());
    const OpenMetrics by_verb(ctl({"metrics"}).out);
    EXPECT_EQ(by_verb.families().size(), text.families().size());
    EXPECT_EQ(by_verb.value("vgpu_vf_weight", kTrain), 100);
}

TEST_F(Exporter, HasOtherPagesAndTheOlderFormat) {
    start_exporter();
    const auto plain = curl(url + "/metrics", "text/plain");
    EXPECT_THAT(plain.out, HasSubstr("text/plain; version=0.0.4"));
    EXPECT_THAT(curl(url + "/").out, HasSubstr("metrics of vgpud for Prometheus, at /metrics."));
    EXPECT_THAT(curl(url + "/other").out, StartsWith("HTTP/1.0 404 Not Found\r\n"));
    EXPECT_THAT(curl(url + "/metrics", "*/*", {"-d", "x=1"}).out,
                StartsWith("HTTP/1.0 405 Method Not Allowed\r\n"));
    const auto head = curl(url + "/metrics", "text/plain", {"--head"});
    EXPECT_THAT(head.out, HasSubstr(fmt::format("Content-Length: {}\r\n", body_of(plain).size())));
    EXPECT_EQ(body_of(head), "");
}

TEST_F(Exporter, NeedsNoPrivilege) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    if (ctl_as_nobody({"--help"}).status != 0)
        GTEST_SKIP() << "nobody cannot execute programs of this build directory";
    start_exporter(
        {"/usr/bin/setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"});
    EXPECT_EQ(OpenMetrics(body_of(curl(url + "/metrics"))).value("vgpu_up", {}), 1);
}

TEST_F(Exporter, SaysThatVgpudIsGoneAndBack) {
    start_exporter();
    wait_for_up(1);
    vgpud->kill_now();
    wait_for_up(0);
    EXPECT_THAT(curl(url + "/metrics").out, StartsWith("HTTP/1.0 200 OK\r\n"));
    start_daemon();
    wait_for_up(1);
    const std::string log = exporter->output();
    const std::string gone = "vgpu-exporter: vgpud does not answer: ";
    EXPECT_THAT(log, HasSubstr(gone + "org.freedesktop.DBus.Error.NameHasNoOwner"));
    EXPECT_EQ(log.find(gone), log.rfind(gone)) << "once, not with each scrape";
    EXPECT_THAT(log, HasSubstr("vgpu-exporter: vgpud answers again\n"));
    bus->kill_now();
    wait_for_up(0);
}

TEST_F(Exporter, SaysThatAVgpudThatIsStoppedDoesNotAnswer) {
    start_exporter();
    vgpud->signal(SIGSTOP);
    EXPECT_EQ(OpenMetrics(body_of(curl(url + "/metrics"))).value("vgpu_up", {}), 0);
    vgpud->signal(SIGCONT);
    wait_for_up(1);
}

TEST_F(Exporter, PromtoolFindsNothingWrongWithTheMetrics) {
    const std::string promtool = program_of_prometheus("promtool");
    if (promtool.empty())
        GTEST_SKIP() << "no promtool (Debian: prometheus; tests/support/prometheus)";
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    start_exporter();
    const auto checked = test::run(
        {"/bin/bash", "-o", "pipefail", "-c",
         fmt::format("/usr/bin/curl -sS --max-time 20 -H 'Accept: text/plain' {}/metrics | "
                     "{} check metrics",
                     url, promtool)});
    EXPECT_EQ(checked.status, 0);
    EXPECT_EQ(checked.out, "");
}

TEST_F(Exporter, TakesTheSocketThatSystemdPasses) {
    const std::string path = directory.file("activated.sock");
    test::ChildProcess systemd({"systemd-socket-activate",
                                {"/usr/bin/systemd-socket-activate", "--listen=" + path,
                                 test::program("vgpu-exporter"), "--bus", address},
                                directory.file("activate.log")});
    test::wait_for("the socket", test::milliseconds(10'000), [&] { return fs::exists(path); });
    const auto scraped = curl("http://vgpu/metrics", "*/*", {"--unix-socket", path});
    EXPECT_EQ(OpenMetrics(body_of(scraped)).value("vgpu_up", {}), 1) << scraped.out;
    EXPECT_EQ(systemd.output().find("serving"), std::string::npos) << "no socket of its own";
}

TEST_F(Exporter, RefusesAddressesThatItCannotServe) {
    const auto wrong = test::run({test::program("vgpu-exporter"), "--listen", "localhost"});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_EQ(wrong.out,
              "vgpu-exporter: --listen: 'localhost' is not an address with a port, such as "
              "127.0.0.1:9482 or [::1]:9482\n");
}

/// The bus can start vgpud here, but starts a program that only makes a file.
struct Activation {
    test::TempDir files;

    [[nodiscard]] std::string bus_policy() const {
        std::ofstream(files.file("org.vgpu1.service"))
            << "[D-BUS Service]\nName=org.vgpu1\nExec=/usr/bin/touch " << started() << "\n";
        return fmt::format("<servicedir>{}</servicedir>", files.path().string());
    }
    [[nodiscard]] std::string started() const { return files.file("started"); }
};

class ExporterOfAStoppedVgpud : protected Activation, public Exporter {
protected:
    ExporterOfAStoppedVgpud()
        : Exporter(Setup{.gpus = "", .bus_policy = bus_policy(), .start = Setup::Start::Later}) {}
};

TEST_F(ExporterOfAStoppedVgpud, DoesNotStartIt) {
    start_exporter();
    EXPECT_EQ(body_of(curl(url + "/metrics")),
              "# TYPE vgpu_up gauge\n# HELP vgpu_up 1 if vgpud answers.\nvgpu_up 0\n# EOF\n");
    EXPECT_FALSE(fs::exists(started()));
    EXPECT_EQ(ctl({"list"}).status, 5);
    EXPECT_TRUE(fs::exists(started())) << "vgpuctl does";
}

class ScrapedByPrometheus : public Exporter {
protected:
    void SetUp() override {
        prometheus = program_of_prometheus("prometheus");
        if (prometheus.empty())
            GTEST_SKIP() << "no prometheus (Debian: prometheus; tests/support/prometheus)";
    }
    /// An address that was free a moment ago: Prometheus does not say which port it takes.
    static std::string free_address() {
        const auto socket = exporter::listen_at("127.0.0.1:0");
        return socket ? exporter::address_of(socket->get()) : "";
    }
    void start_prometheus() {
        own = free_address();
        const std::string config = directory.file("prometheus.yml");
        std::ofstream(config) << fmt::format(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\n"
            "scrape_configs:\n- job_name: vgpu\n  static_configs: [{{targets: ['{}']}}]\n",
            url.substr(url.rfind('/') + 1));
        server_of_metrics.emplace(test::ChildProcess::Spec{
            "prometheus",
            {prometheus, "--config.file=" + config, "--web.listen-address=" + own,
             "--storage.tsdb.path=" + directory.file("tsdb")},
            directory.file("prometheus.log")});
    }
    /// The value of the one series that fits; "" for none.
    [[nodiscard]] std::string value_of(const std::string& query) const {
        const auto answer =
            test::run({"/usr/bin/curl", "-sS", "-G", "--max-time", "10",
                       "http://" + own + "/api/v1/query", "--data-urlencode", "query=" + query});
        const auto json = nlohmann::json::parse(answer.out, nullptr, false);
        if (json.is_discarded() || json.at("data").at("result").size() != 1) return "";
        return json.at("data").at("result").front().at("value").at(1);
    }

    std::string prometheus, own;
    std::optional<test::ChildProcess> server_of_metrics;
};

TEST_F(ScrapedByPrometheus, SeriesHaveTheirValues) {
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M", "--weight", "250"}).status, 0);
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    start_exporter();
    start_prometheus();
    test::wait_for("a scrape", test::milliseconds(20'000),
                   [this] { return value_of("up") == "1"; });
    EXPECT_EQ(value_of("vgpu_up"), "1");
    EXPECT_EQ(value_of("vgpu_vf_weight{name='train'} * on (gpu, vf) group_left (owner) "
                       "vgpu_vf_info{owner='job:1'}"),
              "250");
    EXPECT_EQ(value_of("vgpu_vf_hangs_total{name='train'}"), "0");
}

}  // namespace
}  // namespace vgpu::daemon
