// SPDX-License-Identifier: MIT
//
// An agent in a guest, played by this test over the real socket, seen through D-Bus and vgpuctl.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/guest_port.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

namespace vgpu::daemon {
namespace {

using Dict = std::map<std::string, sdbus::Variant>;
using testing::BusFixture;
using testing::FakePf;
using testing::GuestPort;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class AgentOnTheBus : public BusFixture {
protected:
    AgentOnTheBus() { EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0); }
    [[nodiscard]] std::string socket() const { return directory.file("vf1.agent.sock"); }
    [[nodiscard]] nlohmann::json agent() const {
        return ctl_json({"show", "train"}).at("vf").at("agent");
    }
    void wait_for_agent(const std::string& key, const nlohmann::json& value) const {
        test::wait_for("agent " + key, test::milliseconds(10'000),
                       [&] { return agent().at(key) == value; });
    }
    [[nodiscard]] std::future<test::Completed> quiesce() const {
        return std::async(std::launch::async, [this] { return ctl({"quiesce", "train"}); });
    }
    void end_work() {
        server.with([](FakePf& pf) {
            pf.vfs.at(1).has_work = 0;
            pf.push(VGPU_PF_EVENT_IDLE, 1);
        });
    }
    void give_work() {
        server.with([](FakePf& pf) {
            pf.vfs.at(1).has_work = 1;
            pf.push(VGPU_PF_EVENT_WAKE, 0, 1);
        });
        test::wait_for("vgpud to know of the work", test::milliseconds(5000), [&] {
            return ctl_json({"list", "--vfs"}).at("vfs").at(0).at("has_work") == true;
        });
    }
    /// Starts the job Quiesce; returns its path.
    [[nodiscard]] std::string start_quiesce() const {
        return begin_job(*bus, "/org/vgpu1/gpu/gpu0/vf/1", "Quiesce");
    }
    void cancel(const std::string& job) const {
        proxy(job)->callMethod("Cancel").onInterface("org.vgpu1.Job").withArguments(Dict{});
    }
    [[nodiscard]] std::unique_ptr<sdbus::IProxy> proxy(const std::string& path) const {
        auto made = sdbus::createProxy(*bus, "org.vgpu1", path);
        made->finishRegistration();
        return made;
    }

    std::unique_ptr<sdbus::IConnection> bus = connect();
};

TEST_F(AgentOnTheBus, IsSeenInThePropertyAndByShow) {
    EXPECT_EQ(agent().at("connected"), false);
    EXPECT_EQ(agent().at("socket"), socket());
    EXPECT_THAT(ctl({"show", "train"}).out, HasSubstr("Agent:             none seen\n"));
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("health", "ok");
    EXPECT_EQ(agent().at("version"), "9.9");
    EXPECT_EQ(agent().at("processes"), 1);
    const std::string shown = ctl({"show", "train"}).out;
    EXPECT_THAT(shown, HasSubstr("Agent connected:   yes\n"));
    EXPECT_THAT(shown, HasSubstr("  pid 412: matmul, 256 B, 2 queues\n"));
}

TEST_F(AgentOnTheBus, ThatTalksGarbageIsDisconnectedAndCountedAndMayComeAgain) {
    {
        GuestPort guest(socket());
        guest.greet();
        wait_for_agent("connected", true);
        guest.say("garbage\n");
        while (!guest.hear().is_null()) {
        }
    }
    wait_for_agent("misbehaved", 1);
    EXPECT_EQ(agent().at("connected"), false);
    GuestPort again(socket());
    again.greet();
    wait_for_agent("connected", true);
    EXPECT_EQ(agent().at("misbehaved"), 1);
}

TEST_F(AgentOnTheBus, ASecondClientIsClosedAndTheFirstStays) {
    GuestPort first(socket());
    first.greet();
    wait_for_agent("connected", true);
    GuestPort second(socket());
    EXPECT_TRUE(second.hear().is_null());
    EXPECT_EQ(agent().at("connected"), true);
}

TEST_F(AgentOnTheBus, AFloodDoesNotKeepVgpudFromAnsweringOthers) {
    auto flood = std::async(std::launch::async, [this] {
        const std::string bytes = std::string(1000, ' ') + "\n";
        for (int i = 0; i < 2; ++i) {
            GuestPort one(socket());
            while (::send(one.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0) {
            }
        }
    });
    while (flood.wait_for(0s) != std::future_status::ready) EXPECT_EQ(ctl({"list"}).status, 0);
    wait_for_agent("misbehaved", 2);
}

TEST_F(AgentOnTheBus, RunsASelfTest) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = std::async(std::launch::async, [this] { return ctl({"self-test", "train"}); });
    const auto ask = guest.hear();
    EXPECT_EQ(ask.at("what"), "self-test");
    EXPECT_EQ(ask.at("limit_ms"), 60'000);
    guest.answer(ask, "all well");
    EXPECT_EQ(asked.get().out, "train: self-test passed: all well (5 ms)\n");
}

TEST_F(AgentOnTheBus, TheJobOfASelfTestHasTheReportWhenItIsOver) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const std::string path = begin_job(*bus, "/org/vgpu1/gpu/gpu0/vf/1", "SelfTest",
                                       {{"timeout_ms", sdbus::Variant{300'000u}}});
    const auto job = proxy(path);
    const auto property = [&job](const std::string& name) {
        return job->getProperty(name).onInterface("org.vgpu1.Job");
    };
    EXPECT_EQ(property("State").get<std::string>(), "running");
    EXPECT_TRUE(property("Report").get<Dict>().empty());
    const auto ask = guest.hear();
    EXPECT_EQ(ask.at("limit_ms"), 300'000);
    guest.answer(ask, "all well");
    test::wait_for("the job to be over", test::milliseconds(10'000),
                   [&] { return property("State").get<std::string>() == "done"; });
    const auto report = property("Report").get<Dict>();
    EXPECT_TRUE(report.at("ok").get<bool>());
    EXPECT_EQ(report.at("text").get<std::string>(), "all well");
}

TEST_F(AgentOnTheBus, AQuiesceThatIsCancelledLetsTheProcessesGoOn) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const std::string job = start_quiesce();
    EXPECT_EQ(guest.hear().at("what"), "quiesce");
    cancel(job);
    EXPECT_EQ(guest.hear().at("what"), "thaw");
}

TEST_F(AgentOnTheBus, AQuiesceThatIsCancelledWhileTheDeviceEndsItsWorkDoesSo) {
    give_work();
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const std::string job = start_quiesce();
    guest.answer(guest.hear(), "1 processes are stopped");
    const auto state = [&] {
        return proxy(job)->getProperty("State").onInterface("org.vgpu1.Job").get<std::string>();
    };
    const auto looks = [this] {
        int count = 0;
        server.with([&count](FakePf& pf) { count = pf.asked["get_vf"]; });
        return count;
    };
    test::wait_for("the device to be asked for its work", test::milliseconds(10'000),
                   [&, before = looks()] { return looks() > before + 5; });
    EXPECT_EQ(state(), "running");
    cancel(job);
    EXPECT_EQ(guest.hear().at("what"), "thaw");
    test::wait_for("the job to be over", test::milliseconds(10'000),
                   [&] { return state() == "cancelled"; });
}

TEST_F(AgentOnTheBus, AnAnswerThatDoesNotComeIsATimeOutAndNoAgentIsAnError) {
    const auto refused = ctl({"quiesce", "train"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-305: gpu0/vf1: no agent is connected"));
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const auto late = ctl({"self-test", "train", "--timeout-ms", "100"});
    EXPECT_EQ(late.status, 1);
    EXPECT_THAT(late.out, HasSubstr("VGPU-604: gpu0/vf1: self-test: no answer from the agent"));
}

TEST_F(AgentOnTheBus, QuiesceWaitsUntilTheDeviceHasNoWork) {
    give_work();
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = quiesce();
    guest.answer(guest.hear(), "1 processes are stopped");
    EXPECT_EQ(asked.wait_for(300ms), std::future_status::timeout);
    end_work();
    EXPECT_EQ(asked.get().out, "train: quiesce passed: 1 processes are stopped (5 ms)\n");
}

TEST_F(AgentOnTheBus, QuiesceAsksTheDeviceWhenTheProcessesAreStopped) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = quiesce();
    const auto ask = guest.hear();
    EXPECT_EQ(ctl_json({"list", "--vfs"}).at("vfs").at(0).at("has_work"), false);
    server.with([](FakePf& pf) { pf.vfs.at(1).has_work = 1; });
    guest.answer(ask, "1 processes are stopped");
    EXPECT_EQ(asked.wait_for(300ms), std::future_status::timeout) << "idle by the look before";
    end_work();
    EXPECT_EQ(asked.get().out, "train: quiesce passed: 1 processes are stopped (5 ms)\n");
}

TEST_F(AgentOnTheBus, AQuiesceOfALostDeviceIsAnErrorAndTheProcessesGoOn) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    server.with([](FakePf& pf) { pf.info.device_lost = 1; });
    auto asked = quiesce();
    guest.answer(guest.hear(), "1 processes are stopped");
    EXPECT_EQ(guest.hear().at("what"), "thaw");
    EXPECT_THAT(asked.get().out, HasSubstr("VGPU-602"));
}

TEST_F(AgentOnTheBus, AQuiesceEndsWithThePfCoreThatGoesWhileItWaits) {
    give_work();
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = quiesce();
    guest.answer(guest.hear(), "1 processes are stopped");
    EXPECT_EQ(asked.wait_for(300ms), std::future_status::timeout);
    server.stop();
    EXPECT_EQ(guest.hear().at("what"), "thaw");
    EXPECT_THAT(asked.get().out, HasSubstr("VGPU-601"));
}

/// Number of times that threads of a process have gone to sleep.
std::uint64_t sleeps_of(pid_t pid) {
    std::uint64_t sleeps = 0;
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
        std::ifstream status(task.path() / "status");
        for (std::string word; status >> word;)
            if (word == "voluntary_ctxt_switches:" && status >> word) sleeps += std::stoull(word);
    }
    return sleeps;
}

TEST_F(AgentOnTheBus, AQuiesceThatWaitsForTheDeviceKeepsNobodyBusy) {
    give_work();
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const auto job = start_quiesce();
    guest.answer(guest.hear(), "1 processes are stopped");
    ::usleep(200'000);
    const auto before = sleeps_of(vgpud->pid());
    ::usleep(1'000'000);
    EXPECT_LE(sleeps_of(vgpud->pid()) - before, 500u) << "two threads wake each other";
    cancel(job);
}

TEST_F(AgentOnTheBus, OthersMayNotAskIt) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    EXPECT_EQ(ctl_as_nobody({"self-test", "train"}).status, 4);
}

TEST_F(AgentOnTheBus, VgpudEndsWhileAnAnswerIsOwed) {
    GuestPort guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = std::async(std::launch::async, [this] { return ctl({"self-test", "train"}); });
    EXPECT_EQ(guest.hear().at("what"), "self-test");
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_NE(asked.get().status, 0);
}

}  // namespace
}  // namespace vgpu::daemon
