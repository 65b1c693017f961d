// SPDX-License-Identifier: MIT
//
// Leases and ages of claims: no step of the wall clock touches them, a restart and a reboot go on.
#include "daemon/service/state/lease_clock.h"

#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::HasSubstr;
using testing::VirtualClock;
using testing::World;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

constexpr UnixTime kYear = 365 * 24h;

class Leases : public ::testing::Test {
protected:
    Leases() { EXPECT_TRUE(world.create({{"name", std::string("a")}})); }

    void claim(std::uint64_t lease_s) {
        ASSERT_TRUE(world.claim(vf, "first", {{"lease_s", lease_s}}));
    }
    /// In steps, as a vgpud that looks at owners every 10 s.
    void pass(UnixTime time) {
        for (UnixTime passed{0}; passed < time; passed += 10s) world.pass(10s);
    }
    void reboot() {
        world.pf().restart();
        world.clock.reboot();
        world.start();
    }
    [[nodiscard]] bool is_over() {
        const auto inventory = world.gpu().inventory();
        EXPECT_TRUE(inventory);
        return inventory && inventory->vfs.at(0).is_lease_over;
    }

    World world;
    Target vf{"gpu0", 1};
};

TEST_F(Leases, LastAsLongAsTheyAreHoweverTheWallClockIsStepped) {
    for (const UnixTime step : {kYear, -kYear}) {
        world.clock.step_wall(step);
        claim(100);
        world.clock.step_wall(-step);
        pass(90s);
        EXPECT_FALSE(is_over()) << step.count();
        pass(20s);
        EXPECT_TRUE(is_over()) << step.count();
    }
}

TEST_F(Leases, GoOnOverARestartWhateverTheWallClockSaysThen) {
    claim(100);
    pass(50s);
    world.clock.step_wall(kYear);
    world.start();
    EXPECT_FALSE(is_over());
    pass(60s);
    EXPECT_TRUE(is_over());
}

/// The remainder on record is at most a minute old.
TEST_F(Leases, GoOnAfterARebootWithTheirRemainder) {
    claim(1000);
    pass(900s);
    world.clock.step_wall(-kYear);
    reboot();
    EXPECT_FALSE(is_over());
    pass(90s);
    EXPECT_FALSE(is_over()) << "the time off does not count";
    pass(80s);
    EXPECT_TRUE(is_over());
}

TEST_F(Leases, CostOneWriteAMinuteAndNoneWithoutThem) {
    const int before = world.state.stores;
    pass(600s);
    EXPECT_EQ(world.state.stores, before);
    claim(1000);
    const int claimed = world.state.stores;
    pass(600s);
    EXPECT_LE(world.state.stores, claimed + 10);
    EXPECT_GE(world.state.stores, claimed + 8);
}

/// Each GPU's file has a reading of its own.
TEST(LeasesOnTwoGpus, GoOnAfterARebootFromTheLatestReadingOfAllFiles) {
    World two({"gpu0", "gpu1"});
    ASSERT_TRUE(two.create({}, "gpu0"));
    ASSERT_TRUE(two.claim({"gpu0", 1}, "first", {{"lease_s", std::uint64_t{100}}}));
    two.pass(50s);
    ASSERT_TRUE(two.create({}, "gpu1"));
    two.pf("gpu0").restart();
    two.pf("gpu1").restart();
    two.clock.reboot();
    two.start();
    const auto is_over = [&two] { return two.gpu("gpu0").inventory()->vfs.at(0).is_lease_over; };
    two.pass(40s);
    EXPECT_FALSE(is_over());
    two.pass(15s);
    EXPECT_TRUE(is_over());
}

TEST_F(Leases, AreShownByTheWallClock) {
    world.clock.step_wall(kYear);
    claim(100);
    const auto expires = [this] { return world.gpu().view(1).lease_expires; };
    EXPECT_EQ(expires(), world.clock.unix_time() + 100s);
    world.clock.step_wall(-kYear);
    EXPECT_EQ(expires(), world.clock.unix_time() + 100s);
    const UnixTime shown = expires();
    pass(50s);
    world.clock.step_wall(1s);
    EXPECT_EQ(expires(), shown) << "a clock that is slewed does not move it";
}

/// Claimed while the clock was a year ahead; its age is what has passed.
TEST_F(Leases, AnOwnerThatEndedIsNotifiedHoweverTheWallClockIsStepped) {
    world.owners.processes[7] = 70;
    world.clock.step_wall(kYear);
    ASSERT_TRUE(world.claim(vf, "pid:7"));
    world.clock.step_wall(-kYear);
    world.owners.processes.clear();
    pass(100s);
    EXPECT_THAT(world.gpu().view(1).orphan, HasSubstr("no longer exists"));
}

TEST(LeaseClock, CountsTheTimeSinceBootAfterAReboot) {
    VirtualClock clock;
    clock.advance(500s);
    const LeaseClock first(clock, {});
    EXPECT_EQ(first.now(), clock.unix_time());
    const LeaseTime recorded = first.record();
    clock.advance(1000s);
    clock.reboot();
    clock.advance(30s);
    const LeaseClock next(clock, recorded);
    EXPECT_EQ(next.now(), recorded.reading + 30s);
    EXPECT_EQ(LeaseClock(clock, next.record()).now(), next.now()) << "a restart in that boot";
}

}  // namespace
}  // namespace vgpu::daemon
