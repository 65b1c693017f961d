// SPDX-License-Identifier: MIT
//
// The operator's tools as programs against the real vgpud: events, doctor, report, and vgpud's own
// log.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::Not;

class Operator : public BusFixture {
protected:
    void guard_event(std::uint64_t level) {
        server.with([level](FakePf& pf) { pf.push(VGPU_PF_EVENT_GUARD, 1, 1, level); });
    }
    void wait_for_event(const std::string& text) {
        test::wait_for("the event " + text, test::milliseconds(10'000),
                       [&] { return ctl({"events"}).out.find(text) != std::string::npos; });
    }
    [[nodiscard]] test::ChildProcess follow(const std::string& log) const {
        return test::ChildProcess(
            {"vgpuctl",
             {test::program("vgpuctl"), "--bus", address, "events", "--json", "--follow"},
             directory.file(log)});
    }
    [[nodiscard]] std::string property(const std::string& name) const {
        const auto connection = connect();
        const auto log =
            sdbus::createProxy(*connection, "org.vgpu1", "/org/freedesktop/LogControl1");
        log->finishRegistration();
        return log->getProperty(name).onInterface("org.freedesktop.LogControl1").get<std::string>();
    }
    /// The name of the error; "" for none.
    [[nodiscard]] std::string set_property(const std::string& name,
                                           const std::string& value) const {
        const auto connection = connect();
        const auto log =
            sdbus::createProxy(*connection, "org.vgpu1", "/org/freedesktop/LogControl1");
        log->finishRegistration();
        try {
            log->setProperty(name)
                .onInterface("org.freedesktop.LogControl1")
                .toValue(sdbus::Variant{value});
        } catch (const sdbus::Error& error) {
            return error.getName();
        }
        return "";
    }
};

TEST_F(Operator, EventsAreKeptForThoseWhoWereNotListening) {
    guard_event(3);
    wait_for_event("gpu0/vf1: guard: exceeded the guard limit 'exclusive', level 3");
    const auto none = ctl({"events", "gpu0/vf2"});
    EXPECT_EQ(none.status, 0);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(ctl({"events", "--limit", "513"}).status, 2);
}

TEST_F(Operator, FollowedEventsComeAsTheyHappenAndGoOnWithTheNextVgpud) {
    guard_event(1);
    wait_for_event("level 1");
    test::ChildProcess followed = follow("follow.log");
    followed.wait_for_output("level 1");
    guard_event(2);
    followed.wait_for_output("level 2");
    vgpud->kill_now();
    followed.wait_for_output("vgpuctl: vgpud is gone; events continue when it is back");
    start_daemon();
    followed.wait_for_output("vgpuctl: vgpud is back");
    guard_event(4);
    followed.wait_for_output("level 4");
    followed.signal(SIGINT);
    EXPECT_EQ(followed.wait_exit(), 0);
    const std::string text = followed.output();
    EXPECT_EQ(text.find("level 2"), text.rfind("level 2")) << "once, not twice";
}

TEST_F(Operator, FollowEndsWhenItsReaderOrTheBusGoes) {
    guard_event(1);
    wait_for_event("level 1");
    const auto piped =
        test::run({"/bin/bash", "-o", "pipefail", "-c",
                   fmt::format("{} --bus {} events --follow --json --limit 1 | head -n 1",
                               test::program("vgpuctl"), address)});
    EXPECT_EQ(piped.status, 0) << piped.out;
    EXPECT_THAT(piped.out, HasSubstr("\"kind\":\"guard\""));
    test::ChildProcess followed = follow("bus-goes.log");
    followed.wait_for_output("level 1");
    bus->kill_now();
    EXPECT_EQ(followed.wait_exit(), 5);
    EXPECT_THAT(followed.output(), HasSubstr("the bus is gone"));
}

TEST_F(Operator, AVgpudThatIsStoppedIsNamedByWhateverAsksIt) {
    vgpud->signal(SIGSTOP);
    std::vector<test::ChildProcess> asking;
    for (const std::string verb :
         {"list", "show gpu0", "version", "metrics", "events", "top --once", "jobs", "export",
          "plan --auto 2", "pause gpu0/vf1", "create"}) {
        const std::string log = directory.file(fmt::format("asking{}.log", asking.size()));
        asking.emplace_back(
            test::ChildProcess::Spec{"vgpuctl",
                                     {"/bin/sh", "-c",
                                      fmt::format("exec {} --timeout 1 --bus {} {}",
                                                  test::program("vgpuctl"), address, verb)},
                                     log});
    }
    for (test::ChildProcess& one : asking) {
        EXPECT_EQ(one.wait_exit(), 5);
        EXPECT_THAT(one.output(), HasSubstr("(vgpud) has not answered within 1 s; it is stopped"));
    }
    vgpud->signal(SIGCONT);
}

TEST_F(Operator, AFullDiskIsAFailureAndAReaderWhoHasEnoughIsNone) {
    const std::string vgpuctl =
        fmt::format("set -o pipefail; {} --bus {} ", test::program("vgpuctl"), address);
    for (const char* verb : {"export", "metrics", "list --json", "top"}) {
        const auto full = test::run({"/bin/bash", "-c", vgpuctl + verb + " >/dev/full"});
        EXPECT_EQ(full.status, 1) << verb;
        EXPECT_THAT(full.out, HasSubstr("vgpuctl: cannot write the output")) << verb;
    }
    const auto piped =
        test::run({"/bin/bash", "-c", vgpuctl + "top --json --interval-ms 100 | head -c 1"});
    EXPECT_EQ(piped.status, 0);
    EXPECT_EQ(piped.out, "{");
}

TEST_F(Operator, TheLogIsTurnedAtRunTime) {
    EXPECT_EQ(property("SyslogIdentifier"), "vgpud");
    EXPECT_EQ(property("LogLevel"), "debug");
    EXPECT_EQ(property("LogTarget"), "console");
    EXPECT_EQ(set_property("LogLevel", "err"), "");
    EXPECT_EQ(property("LogLevel"), "err");
    guard_event(1);
    wait_for_event("level 1");
    EXPECT_THAT(vgpud->output(), Not(HasSubstr("level 1")));
    EXPECT_EQ(set_property("LogLevel", "warning"), "");
    guard_event(2);
    wait_for_event("level 2");
    EXPECT_THAT(vgpud->output(), HasSubstr("level 2"));
    EXPECT_EQ(set_property("LogLevel", "loud"), "org.vgpu1.Error.OutOfRange");
    EXPECT_EQ(set_property("LogTarget", "kmsg"), "org.vgpu1.Error.OutOfRange");
}

TEST_F(Operator, OthersMayReadTheLogsLevelButNotTurnIt) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    const auto as_nobody = [this](std::vector<std::string> call) {
        std::vector<std::string> command{
            "/usr/bin/setpriv", "--reuid",        "nobody",          "--regid",
            "nogroup",          "--clear-groups", "/usr/bin/busctl", "--address=" + address};
        command.insert(command.end(), call.begin(), call.end());
        command.insert(command.end(), {"org.vgpu1", "/org/freedesktop/LogControl1",
                                       "org.freedesktop.LogControl1", "LogLevel"});
        if (call.front() == "set-property") command.insert(command.end(), {"s", "err"});
        return test::run(command);
    };
    const auto read = as_nobody({"get-property"});
    EXPECT_EQ(read.out, "s \"debug\"\n");
    const auto refused = as_nobody({"set-property"});
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: LogControl1: uid"));
    EXPECT_EQ(property("LogLevel"), "debug");
}

TEST_F(Operator, DoctorFindsWhatIsWrongWithVgpud) {
    const auto level_of = [this](const std::string& id) -> std::string {
        // sdbus-c++ 1.2 leaks its sd_bus where the bus cannot be opened
        ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
        const auto done = ctl({"doctor", "--json", "--run-dir", directory.file("run")});
        ::unsetenv("ASAN_OPTIONS");
        EXPECT_TRUE(nlohmann::json::accept(done.out)) << done.out;
        const auto said = nlohmann::json::parse(done.out);
        for (const auto& finding : said.at("findings"))
            if (finding.at("id") == id) return finding.at("level");
        return "";
    };
    EXPECT_EQ(level_of("bus"), "ok");
    EXPECT_EQ(level_of("vgpud"), "ok");
    EXPECT_EQ(level_of("version"), "ok");
    EXPECT_EQ(level_of("gpu"), "ok");
    EXPECT_EQ(level_of("run-dir"), "ok");
    server.stop();
    wait_for_gpu_state("pf-lost");
    EXPECT_EQ(level_of("gpu"), "problem");
    vgpud->kill_now();
    EXPECT_EQ(level_of("vgpud"), "problem");
    EXPECT_EQ(ctl({"doctor"}).status, 1);
    bus->kill_now();
    EXPECT_EQ(level_of("bus"), "problem");
}

TEST_F(Operator, AnotherUapiVersionIsNamedAndHasItsOwnError) {
    server.stop();
    server.with([](FakePf& pf) { pf.info.uapi_version = VGPU_PF_UAPI_VERSION + 1; });
    server.start();
    wait_for_gpu_state("version-mismatch");
    EXPECT_THAT(ctl({"create", "--gpu", "gpu0"}).out, HasSubstr("VGPU-605: "));
}

struct OneGpu {
    test::GpuStack stack{{.vfs = 2, .vram_mb = 256}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            stack.dir().file("uapi.sock"), stack.dir().path().string());
    }
};

class OperatorOfARealGpu : private OneGpu, public BusFixture {
protected:
    OperatorOfARealGpu() : BusFixture(Setup{.gpus = config()}) {}
};

TEST_F(OperatorOfARealGpu, ReportHasEveryPieceOfVgpudAndThePfCore) {
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "16M"}).status, 0);
    const std::string file = directory.file("report.tar.gz");
    const auto done = ctl({"report", "-o", file, "--config", directory.file("vgpud.json")});
    EXPECT_EQ(done.status, 0) << done.out;
    const auto listed = test::run({"/usr/bin/tar", "-tzf", file});
    for (const char* piece :
         {"README.txt", "versions.json", "doctor.json", "list.json", "events.json", "metrics.txt",
          "configuration.json", "run-table/gpu0.json", "trace/gpu0.trace", "dump/gpu0.txt"})
        EXPECT_THAT(listed.out, HasSubstr(std::string("vgpu-report/") + piece + "\n"));
    const auto dump = test::run({"/usr/bin/tar", "-xOzf", file, "vgpu-report/dump/gpu0.txt"});
    EXPECT_THAT(dump.out, HasSubstr("vgpu PF core 'gpu0'"));
    const auto versions = test::run({"/usr/bin/tar", "-xOzf", file, "vgpu-report/versions.json"});
    EXPECT_THAT(versions.out, HasSubstr("\"vgpud\": {"));
}

}  // namespace
}  // namespace vgpu::daemon
