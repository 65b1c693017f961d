// SPDX-License-Identifier: MIT
//
// An agent in a guest, played by this test over the real socket, seen through D-Bus and vgpuctl.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <future>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

/// The guest's end of the port.
class Guest {
public:
    explicit Guest(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        fd_ = make_socket();
        const void* generic = &address;
        test::wait_for("the agent's socket", test::milliseconds(10'000), [&] {
            return ::connect(fd_, static_cast<const sockaddr*>(generic), sizeof address) == 0;
        });
    }
    ~Guest() { ::close(fd_); }
    [[nodiscard]] int fd() const { return fd_; }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    void say(const std::string& text) const {
        EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    }
    /// The next line of vgpud's; null once it has disconnected.
    nlohmann::json hear() {
        while (pending_.find('\n') == std::string::npos) {
            pollfd waited{.fd = fd_, .events = POLLIN, .revents = 0};
            if (::poll(&waited, 1, 20'000) != 1) throw std::runtime_error("vgpud says nothing");
            char buffer[4096];
            const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
            if (got <= 0) return nullptr;
            pending_.append(buffer, static_cast<std::size_t>(got));
        }
        const std::string line = pending_.substr(0, pending_.find('\n'));
        pending_.erase(0, line.size() + 1);
        return nlohmann::json::parse(line);
    }

    void greet() {
        EXPECT_EQ(hear().at("type"), "welcome");
        say(R"({"type":"hello","protocol":1,"welcomed":true,"agent":"9.9","kernel":"6.12",)"
            R"("driver":{"name":"amdgpu","version":"","srcversion":""},"rocr":"1.13",)"
            R"("vf":{"pci":"0000:00:05.0","unique_id":"1d"}})"
            "\n");
        say(R"({"type":"status","health":{"driver":"amdgpu","render_node":"/dev/dri/renderD128",)"
            R"("resets":0,"errors":0,"last_error":""},"vram":{"total_bytes":1024,)"
            R"("used_bytes":512},"process_count":1,"processes":[{"pid":412,"comm":"matmul",)"
            R"("vram_bytes":256,"queues":2}],"quiesced":false})"
            "\n");
    }
    void answer(const nlohmann::json& ask, const std::string& text) const {
        say(nlohmann::json{{"type", "result"},
                           {"id", ask.at("id")},
                           {"ok", true},
                           {"text", text},
                           {"duration_ms", 5}}
                .dump() +
            "\n");
    }

private:
    static int make_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

    int fd_ = -1;
    std::string pending_;
};

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
};

TEST_F(AgentOnTheBus, IsSeenInThePropertyAndByShow) {
    EXPECT_EQ(agent().at("connected"), false);
    EXPECT_EQ(agent().at("socket"), socket());
    EXPECT_THAT(ctl({"show", "train"}).out, HasSubstr("Agent:             none seen\n"));
    Guest guest(socket());
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
        Guest guest(socket());
        guest.greet();
        wait_for_agent("connected", true);
        guest.say("garbage\n");
        while (!guest.hear().is_null()) {
        }
    }
    wait_for_agent("misbehaved", 1);
    EXPECT_EQ(agent().at("connected"), false);
    Guest again(socket());
    again.greet();
    wait_for_agent("connected", true);
    EXPECT_EQ(agent().at("misbehaved"), 1);
}

TEST_F(AgentOnTheBus, ASecondClientIsClosedAndTheFirstStays) {
    Guest first(socket());
    first.greet();
    wait_for_agent("connected", true);
    Guest second(socket());
    EXPECT_TRUE(second.hear().is_null());
    EXPECT_EQ(agent().at("connected"), true);
}

TEST_F(AgentOnTheBus, AFloodDoesNotKeepVgpudFromAnsweringOthers) {
    auto flood = std::async(std::launch::async, [this] {
        const std::string bytes = std::string(1000, ' ') + "\n";
        for (int i = 0; i < 2; ++i) {
            Guest one(socket());
            while (::send(one.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0) {
            }
        }
    });
    while (flood.wait_for(0s) != std::future_status::ready) EXPECT_EQ(ctl({"list"}).status, 0);
    wait_for_agent("misbehaved", 2);
}

TEST_F(AgentOnTheBus, RunsASelfTest) {
    Guest guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    auto asked = std::async(std::launch::async, [this] { return ctl({"self-test", "train"}); });
    const auto ask = guest.hear();
    EXPECT_EQ(ask.at("what"), "self-test");
    EXPECT_EQ(ask.at("limit_ms"), 60'000);
    guest.answer(ask, "all well");
    EXPECT_EQ(asked.get().out, "train: self-test passed: all well (5 ms)\n");
}

TEST_F(AgentOnTheBus, AnAnswerThatDoesNotComeIsATimeOutAndNoAgentIsAnError) {
    const auto refused = ctl({"quiesce", "train"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-305: gpu0/vf1: no agent is connected"));
    Guest guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    const auto late = ctl({"self-test", "train", "--timeout-ms", "100"});
    EXPECT_EQ(late.status, 1);
    EXPECT_THAT(late.out, HasSubstr("VGPU-604: gpu0/vf1: self-test: no answer from the agent"));
}

TEST_F(AgentOnTheBus, QuiesceWaitsUntilTheDeviceHasNoWork) {
    server.with([](FakePf& pf) {
        pf.vfs.at(1).has_work = 1;
        pf.push(VGPU_PF_EVENT_WAKE, 0, 1);
    });
    Guest guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    test::wait_for("vgpud to know of the work", test::milliseconds(5000), [&] {
        return ctl_json({"list", "--vfs"}).at("vfs").at(0).at("has_work") == true;
    });
    auto asked = std::async(std::launch::async, [this] { return ctl({"quiesce", "train"}); });
    guest.answer(guest.hear(), "1 processes are stopped");
    EXPECT_EQ(asked.wait_for(300ms), std::future_status::timeout);
    server.with([](FakePf& pf) {
        pf.vfs.at(1).has_work = 0;
        pf.push(VGPU_PF_EVENT_IDLE, 1);
    });
    EXPECT_EQ(asked.get().out, "train: quiesce passed: 1 processes are stopped (5 ms)\n");
}

TEST_F(AgentOnTheBus, OthersMayNotAskIt) {
    Guest guest(socket());
    guest.greet();
    wait_for_agent("connected", true);
    EXPECT_EQ(ctl_as_nobody({"self-test", "train"}).status, 4);
}

TEST_F(AgentOnTheBus, VgpudEndsWhileAnAnswerIsOwed) {
    Guest guest(socket());
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
