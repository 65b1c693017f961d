// SPDX-License-Identifier: MIT
#include "daemon/adapters/service_manager.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/daemon/notify_socket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::daemon::adapters {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::NotifySocket;
using testing::VirtualClock;

class ServiceManagerTest : public ::testing::Test {
protected:
    ~ServiceManagerTest() override {
        ::unsetenv("WATCHDOG_USEC");
        ::unsetenv("WATCHDOG_PID");
    }
    static void set_watchdog(std::chrono::microseconds interval, pid_t pid = ::getpid()) {
        ::setenv("WATCHDOG_USEC", std::to_string(interval.count()).c_str(), 1);
        ::setenv("WATCHDOG_PID", std::to_string(pid).c_str(), 1);
    }

    NotifySocket systemd{fmt::format("{}/vgpu-notify-{}", ::testing::TempDir(), ::getpid())};
    VirtualClock clock;
};

TEST_F(ServiceManagerTest, IsNotifiedThatTheDaemonIsReadyAndThatItStops) {
    ServiceManager manager(clock);
    manager.ready_if(true, "serving org.vgpu1");
    manager.ready_if(true, "serving org.vgpu1");
    manager.stopping();
    EXPECT_THAT(systemd.messages(), ElementsAre("READY=1\nSTATUS=serving org.vgpu1", "STOPPING=1"));
}

TEST_F(ServiceManagerTest, IsKeptWaitingWhileAGpuStartsButNotByOneThatNeverComes) {
    ServiceManager manager(clock);
    const Nanoseconds limit = clock.now() + ServiceManager::kLongestStart;
    manager.ready_if(false, "serving");
    EXPECT_EQ(manager.next_step(), limit);
    clock.advance(ServiceManager::kLongestStart - 1ms);
    manager.ready_if(false, "serving");
    EXPECT_THAT(systemd.messages(), IsEmpty());
    clock.advance(1ms);
    manager.ready_if(false, "serving");
    EXPECT_THAT(systemd.messages(), ElementsAre("READY=1\nSTATUS=serving"));
    EXPECT_EQ(manager.next_step(), std::nullopt);
}

TEST_F(ServiceManagerTest, GetsASignOfLifeTwiceInEachIntervalOfItsWatchdog) {
    set_watchdog(30s);
    ServiceManager manager(clock);
    manager.ready_if(true, "serving");
    manager.step();
    EXPECT_THAT(systemd.messages(), ElementsAre(_, "WATCHDOG=1"));
    EXPECT_EQ(manager.next_step(), clock.now() + 15s);
    clock.advance(15s - 1ms);
    manager.step();
    EXPECT_THAT(systemd.messages(), IsEmpty());
    clock.advance(1ms);
    manager.step();
    EXPECT_THAT(systemd.messages(), ElementsAre("WATCHDOG=1"));
}

TEST_F(ServiceManagerTest, GetsNoMoreSignsFromALoopThatTurnsOften) {
    set_watchdog(10s);
    ServiceManager manager(clock);
    for (int i = 0; i < 10'000; ++i, clock.advance(1ms)) manager.step();
    EXPECT_EQ(systemd.messages().size(), 2u);
}

TEST_F(ServiceManagerTest, WithoutWatchdogNothingIsSentAndNothingIsDue) {
    ServiceManager manager(clock);
    manager.ready_if(true, "serving");
    clock.advance(3600s);
    manager.step();
    EXPECT_THAT(systemd.messages(), ElementsAre("READY=1\nSTATUS=serving"));
    EXPECT_EQ(manager.next_step(), std::nullopt);
}

TEST_F(ServiceManagerTest, TheWatchdogOfAnotherProcessIsNotServed) {
    set_watchdog(30s, ::getpid() + 1);
    ServiceManager manager(clock);
    manager.ready_if(true, "serving");
    manager.step();
    EXPECT_THAT(systemd.messages(), Not(Contains("WATCHDOG=1")));
    EXPECT_EQ(manager.next_step(), std::nullopt);
}

TEST_F(ServiceManagerTest, NobodyIsNotifiedWhereNoServiceManagerIs) {
    ::unsetenv("NOTIFY_SOCKET");
    set_watchdog(1s);
    ServiceManager manager(clock);
    manager.ready_if(true, "serving");
    manager.step();
    manager.stopping();
    EXPECT_THAT(systemd.messages(), IsEmpty());
}

}  // namespace
}  // namespace vgpu::daemon::adapters
