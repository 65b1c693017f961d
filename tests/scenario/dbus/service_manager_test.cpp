// SPDX-License-Identifier: MIT
//
// What the real vgpud reports to a service manager.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/deadline.h"
#include "tests/unit/daemon/notify_socket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>

namespace vgpu::daemon {
namespace {

using ::testing::AllOf;
using testing::BusFixture;
using ::testing::Each;
using testing::NotifySocket;
using ::testing::SizeIs;

/// Short, so that the test is short; vgpud sends two notices in this time.
constexpr int kWatchdogUs = 200'000;

/// Makes the notify socket before vgpud starts, which inherits NOTIFY_SOCKET of this process.
struct Systemd {
    NotifySocket socket{fmt::format("{}/vgpud-notify-{}", ::testing::TempDir(), ::getpid())};
};

class UnderServiceManager : protected Systemd, public BusFixture {
protected:
    UnderServiceManager()
        : BusFixture({.gpus = "", .environment = {fmt::format("WATCHDOG_USEC={}", kWatchdogUs)}}) {}

    /// Waits (bounded) for `count` more messages of vgpud. The bus of this test says READY=1, too.
    std::vector<std::string> next(std::size_t count) {
        std::vector<std::string> got;
        test::wait_for("messages to the service manager", test::milliseconds(10'000), [&] {
            for (std::string& message : socket.messages())
                if (message != "READY=1") got.push_back(std::move(message));
            return got.size() >= count;
        });
        return got;
    }
};

TEST_F(UnderServiceManager, VgpudSaysReadyThenThatItLivesThenThatItStops) {
    EXPECT_EQ(next(1).front(), "READY=1\nSTATUS=serving org.vgpu1");
    EXPECT_THAT(next(5), AllOf(SizeIs(::testing::Ge(5u)), Each("WATCHDOG=1")));
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_EQ(next(1).back(), "STOPPING=1");
}

}  // namespace
}  // namespace vgpu::daemon
