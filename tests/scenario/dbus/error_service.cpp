// SPDX-License-Identifier: MIT
//
// Errors of missing rights, of the state, of the PF core and of vgpud itself.
#include "tests/scenario/dbus/error_path.h"
#include "tests/scenario/dbus/guest_port.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <future>

namespace vgpu::daemon::testing {

using ::testing::HasSubstr;

// --- what a caller may not

Told ErrorPath::raise_NotAuthorized() {
    polkit->say(false);
    return with_ctl(create({}), {"create"});
}

/// Calls that stay open until the destructor.
class OpenCalls {
public:
    OpenCalls(std::unique_ptr<sdbus::IConnection> bus, std::size_t count)
        : bus_(std::move(bus)), manager_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1")) {
        manager_->finishRegistration();
        for (std::size_t i = 0; i < count; ++i)
            manager_->callMethodAsync("CreateVf")
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string("gpu0"), Dict{})
                .uponReplyInvoke([](const sdbus::Error*, const sdbus::ObjectPath&) {});
        bus_->enterEventLoopAsync();
    }
    ~OpenCalls() { bus_->leaveEventLoop(); }
    OpenCalls(const OpenCalls&) = delete;
    OpenCalls& operator=(const OpenCalls&) = delete;

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
};

/// Root may have all open requests; another user reaches a lower bound first.
Told ErrorPath::raise_TooManyRequests() {
    constexpr std::size_t kEach = 32;
    const std::size_t max = ::geteuid() == 0 ? 112 : 40;
    polkit->keep_open("org.vgpu1.provision");
    std::vector<std::unique_ptr<OpenCalls>> open;
    for (std::size_t asked = 0; asked < max; asked += kEach)
        open.push_back(std::make_unique<OpenCalls>(connect(), std::min(kEach, max - asked)));
    test::wait_for("polkit to be asked about all", kPrompt,
                   [&] { return polkit->open_questions() == max; });
    return with_ctl(create({}), {"create"});
}

// --- durable state

Told ErrorPath::raise_StateReadOnly() {
    start_on_state("{");
    return with_ctl(create({}), {"create"});
}

Told ErrorPath::raise_StateNotWritten() {
    make_train();
    // a file that another program has changed is not written over
    std::ofstream(state_file(), std::ios::app) << "x";
    Told told = train("Set", Dict{{"weight", sdbus::Variant{7u}}});
    told.ctl = ctl({"set", "train", "--weight", "9"});
    return told;
}

Told ErrorPath::raise_StateCorrupt() {
    start_on_state("{");
    return {.name = "", .text = vgpud->output()};
}

Told ErrorPath::raise_StateNewer() {
    start_on_state(
        text_of_file(VGPU_SOURCE_DIR "/schemas/examples/invalid/vgpud-state-version.json"));
    return {.name = "", .text = vgpud->output()};
}

// --- the PF core

Told ErrorPath::raise_PfLost() {
    make_train();
    server.stop();
    wait_for_gpu_state("pf-lost");
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_DeviceLost() {
    make_train();
    come_back("device-lost", [](FakePf& pf) { pf.info.device_lost = 1; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_PfRefused() {
    make_train();
    server.with([](FakePf& pf) { pf.refuse = "control"; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_TimedOut() {
    make_train();
    GuestPort guest(directory.file("vf1.agent.sock"));
    guest.greet();
    test::wait_for("the agent", kPrompt, [&] {
        return ctl_json({"show", "train"}).at("vf").at("agent").at("connected") == true;
    });
    auto asked = std::async(std::launch::async, [this] {
        return ctl({"self-test", "train", "--timeout-ms", "100"});
    });
    Told told = train_job("SelfTest", {{"timeout_ms", sdbus::Variant{100u}}});
    told.ctl = asked.get();
    return told;
}

Told ErrorPath::raise_VersionMismatch() {
    make_train();
    come_back("version-mismatch", [](FakePf& pf) { pf.info.uapi_version = 999; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

// --- vgpud itself

Told ErrorPath::raise_Stopping() {
    make_train();
    polkit->keep_open("org.vgpu1.control");
    auto by_ctl = std::async(std::launch::async, [this] { return ctl({"pause", "train"}); });
    auto by_bus = std::async(std::launch::async, [this] { return train("Pause", Dict{}); });
    test::wait_for("polkit to be asked", kPrompt, [&] { return polkit->open_questions() == 2; });
    vgpud->signal(SIGTERM);
    Told told = by_bus.get();
    told.ctl = by_ctl.get();
    return told;
}

Told ErrorPath::raise_AlreadyRunning() {
    const auto second = test::run(daemon_command());
    EXPECT_EQ(second.status, 1);
    return {.name = "", .text = second.out};
}

Told ErrorPath::raise_ConfigInvalid() {
    std::vector<std::string> command = daemon_command();
    std::replace(command.begin(), command.end(), directory.file("vgpud.json"),
                 directory.path().string());
    EXPECT_THAT(test::run(command).out, HasSubstr("Is a directory"));
    std::ofstream(directory.file("vgpud.json")) << "{";
    const auto refused = test::run(daemon_command());
    EXPECT_EQ(refused.status, 1);
    return {.name = "", .text = refused.out};
}

/// This GPU has no sockets that could be granted.
Told ErrorPath::raise_System() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return manager("Grant", std::string("job:1"), 0u, 0u, Dict{});
}

}  // namespace vgpu::daemon::testing
