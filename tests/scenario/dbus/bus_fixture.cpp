// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/bus_fixture.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon::testing {

namespace {

constexpr std::string_view kBusConfig = R"(<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>{}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <policy user="{}"><allow own="org.vgpu1"/></policy>
  {}
  <include>{}</include>
</busconfig>
)";

constexpr std::string_view kDaemonConfig = R"({{
  // the GPU of these tests is a fake behind a real socket
  "state_dir": "{0}/state", "run_dir": "{0}/run",
  "gpus": {1}
}})";

constexpr std::string_view kFakeGpu =
    R"([{{"id": "gpu0", "attach": {{"uapi": "{0}/uapi.sock", "vf_socket_dir": "{0}"}}}}])";

}  // namespace

BusFixture::BusFixture(const Setup& setup)
    : address("unix:path=" + directory.file("bus.sock")),
      server(directory.file("uapi.sock")),
      setup_(setup) {
    std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
    write_files();
    bus.emplace(test::ChildProcess::Spec{
        "dbus-daemon",
        {"/usr/bin/dbus-daemon", "--nofork", "--nopidfile", "--nosyslog", "--print-address=1",
         "--config-file=" + directory.file("bus.conf")},
        directory.file("bus.log")});
    bus->wait_for_output("unix:path=");
    if (setup_.start == Setup::Start::Now) start_daemon();
}

void BusFixture::write_files() const {
    std::ofstream(directory.file("bus.conf"))
        << fmt::format(kBusConfig, address, ::geteuid(), setup_.bus_policy, VGPU_BUS_POLICY);
    std::ofstream(directory.file("vgpud.json")) << fmt::format(
        kDaemonConfig, directory.path().string(),
        setup_.gpus.empty() ? fmt::format(kFakeGpu, directory.path().string()) : setup_.gpus);
}

std::vector<std::string> BusFixture::daemon_command() const {
    std::vector<std::string> command{
        test::program("vgpud"),       "--bus",       address, "--config",
        directory.file("vgpud.json"), "--log-level", "debug"};
    if (!setup_.authority.empty()) command.push_back(setup_.authority);
    return command;
}

void BusFixture::start_daemon() {
    vgpud.reset();
    vgpud.emplace(test::ChildProcess::Spec{"vgpud", daemon_command(),
                                           directory.file(fmt::format("vgpud{}.log", ++starts_)),
                                           setup_.environment});
    vgpud->wait_for_output("vgpud: ready");
}

test::Completed BusFixture::ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {test::program("vgpuctl"), "--bus", address});
    return test::run(arguments);
}

nlohmann::json BusFixture::ctl_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto done = ctl(std::move(arguments));
    EXPECT_EQ(done.status, 0) << done.out;
    return nlohmann::json::parse(done.out, nullptr, false);
}

test::Completed BusFixture::ctl_as_nobody(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/setpriv", "--reuid", "nobody", "--regid", "nogroup",
                      "--clear-groups", test::program("vgpuctl"), "--bus", address});
    return test::run(arguments);
}

std::unique_ptr<sdbus::IConnection> BusFixture::connect() const {
    return sdbus::createSessionBusConnectionWithAddress(address);
}

std::unique_ptr<sdbus::IConnection> BusFixture::connect_as_nobody() const {
    constexpr uid_t kNobody = 65534, kKeep = static_cast<uid_t>(-1);
    // Changes only this thread; glibc's function would change all.
    EXPECT_EQ(::syscall(SYS_setresuid, kKeep, kNobody, kKeep), 0);
    auto connection = connect();
    EXPECT_EQ(::syscall(SYS_setresuid, kKeep, 0, kKeep), 0);
    return connection;
}

std::string BusFixture::begin_job(sdbus::IConnection& bus, const std::string& vf,
                                  const std::string& method,
                                  const std::map<std::string, sdbus::Variant>& options) {
    const auto proxy = sdbus::createProxy(bus, "org.vgpu1", vf);
    proxy->finishRegistration();
    sdbus::ObjectPath job;
    proxy->callMethod(method)
        .onInterface("org.vgpu1.Vf")
        .withArguments(options)
        .storeResultsTo(job);
    return job;
}

BusFixture::Refusal BusFixture::create_refusal(
    const std::map<std::string, sdbus::Variant>& options) const {
    const auto connection = connect();
    const auto manager = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    try {
        sdbus::ObjectPath made;
        manager->callMethod("CreateVf")
            .onInterface("org.vgpu1.Manager")
            .withArguments(std::string("gpu0"), options)
            .storeResultsTo(made);
    } catch (const sdbus::Error& error) {
        return {.name = error.getName(), .text = error.getMessage()};
    }
    return {};
}

void BusFixture::wait_for_gpu_state(const std::string& state) {
    test::wait_for("gpu0 to be " + state, test::milliseconds(10'000), [&] {
        return ctl_json({"list", "--gpus"}).at("gpus").front().at("state") == state;
    });
}

}  // namespace vgpu::daemon::testing
