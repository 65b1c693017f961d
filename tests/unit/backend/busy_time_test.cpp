// SPDX-License-Identifier: MIT
//
// BusyTime: what the counters of xe's perf PMU say about VFs, and when they say nothing.
#include "daemon/backend/xe/busy_time.h"

#include "daemon/backend/xe/backend.h"
#include "tests/unit/backend/backend_world.h"
#include "tests/unit/backend/fake_perf.h"
#include "tests/unit/backend/fake_xe.h"

#include <gmock/gmock.h>

namespace vgpu::daemon::xe {
namespace {

using namespace daemon::testing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kActive = 2, kTotal = 3, kRender = 0, kCompute = 4;
constexpr std::uint64_t kTicksPerSecond = 1'000'000;
const std::string kFolder = "/sys/bus/event_source/devices/xe_0000_03_00.0/";

std::uint64_t counter(std::uint64_t event, std::uint64_t engine_class, std::uint64_t vf) {
    return event | engine_class << 20 | vf << 44;
}

void add_pmu(FakeSysfs& files) {
    files.add(kFolder + "type", "33");
    files.add(kFolder + "cpumask", "0");
    files.add(kFolder + "events/engine-active-ticks", "event=0x02");
    files.add(kFolder + "events/engine-total-ticks", "event=0x03");
    files.add(kFolder + "format/engine_class", "config:20-27");
    files.add(kFolder + "format/function", "config:44-59");
}

class BusyTimeTest : public ::testing::Test {
protected:
    BusyTimeTest() {
        add_pmu(files);
        for (const std::uint64_t vf : {1u, 2u}) add_engine(kRender, vf);
    }
    void add_engine(std::uint64_t engine_class, std::uint64_t vf) {
        world.values[counter(kActive, engine_class, vf)] = 1000;
        world.values[counter(kTotal, engine_class, vf)] = 5000;
    }
    /// A second passes, for `part` of which the VF has the engine.
    void work(std::uint64_t engine_class, std::uint64_t vf, double part) {
        world.values[counter(kActive, engine_class, vf)] +=
            static_cast<std::uint64_t>(part * kTicksPerSecond);
        world.values[counter(kTotal, engine_class, vf)] +=
            kTicksPerSecond * timings.at(static_cast<std::uint32_t>(vf)).quantum_ms / 40;
    }
    void update() { busy.update(timings); }

    FakeSysfs files;
    PerfWorld world;
    ManualClock clock;
    std::map<std::uint32_t, Timing> timings{{0, {1, 1}}, {1, {10, 1}}, {2, {29, 1}}};  // sum: 40 ms
    BusyTime busy{files, std::make_unique<FakePerf>(world), clock, "0000:03:00.0"};
};

TEST_F(BusyTimeTest, IsThePartOfTheTimeInWhichTheVfHadTheEngine) {
    update();
    EXPECT_EQ(busy.of(1), seconds(0));
    work(kRender, 1, 0.75);
    work(kRender, 2, 0.25);
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(750));
    EXPECT_EQ(busy.of(2), milliseconds(250));
    EXPECT_EQ(busy.of(3), std::nullopt);
    work(kRender, 2, 1);
    work(kRender, 1, 0);
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(750));
    EXPECT_EQ(busy.of(2), milliseconds(1250));
    EXPECT_THAT(busy.take_problem(), IsEmpty());
}

TEST_F(BusyTimeTest, TheBusierOfTheTwoEnginesCounts) {
    add_engine(kCompute, 1);
    update();
    work(kRender, 1, 0.125);
    work(kCompute, 1, 0.5);
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(500));
}

TEST_F(BusyTimeTest, IsNeverMoreThanTheTimeThatPassed) {
    update();
    work(kRender, 1, 3);
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), seconds(1));
}

TEST_F(BusyTimeTest, AnIntervalInWhichTheCountersBeginAgainDoesNotCount) {
    update();
    work(kRender, 1, 0.5);
    clock.advance(seconds(1));
    update();
    for (const std::uint64_t event : {kActive, kTotal})
        world.values[counter(event, kRender, 1)] = 7;
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(500));
    for (const std::uint64_t event : {kActive, kTotal})
        world.values[counter(event, kRender, 1)] -= 5000;  // below 0: modulo 2^64
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(500));
    work(kRender, 1, 0.25);
    clock.advance(seconds(1));
    update();
    EXPECT_EQ(busy.of(1), milliseconds(750));
}

TEST_F(BusyTimeTest, IsUnknownWhileAQuantumIsUnlimited) {
    update();
    EXPECT_THAT(world.open, SizeIs(4));
    timings[2].quantum_ms = 0;
    update();
    EXPECT_EQ(busy.of(1), std::nullopt);
    EXPECT_THAT(world.open, IsEmpty());
}

TEST_F(BusyTimeTest, CountersOfVfsThatAreGoneAreClosed) {
    update();
    timings.erase(2);
    update();
    EXPECT_EQ(busy.of(2), std::nullopt);
    EXPECT_THAT(world.open, SizeIs(2));
    timings.clear();
    update();
    EXPECT_THAT(world.open, IsEmpty());
}

TEST_F(BusyTimeTest, AKernelWithoutCountersOfFunctionsIsNamedOnce) {
    files.remove(kFolder + "format/function");
    update();
    EXPECT_THAT(busy.take_problem(), HasSubstr("there is no " + kFolder + "format/function"));
    update();
    EXPECT_THAT(busy.take_problem(), IsEmpty());
    EXPECT_EQ(busy.of(1), std::nullopt);
}

TEST_F(BusyTimeTest, MissingRightsAreNamedAndTimeCountsFromWhenTheyAreThere) {
    world.open_error = EACCES;
    update();
    EXPECT_THAT(busy.take_problem(), HasSubstr("(Permission denied); vgpud needs CAP_PERFMON"));
    world.open_error = 0;
    clock.advance(seconds(5));
    update();
    EXPECT_EQ(busy.of(1), seconds(0));
}

TEST_F(BusyTimeTest, ACounterThatFailsClosesAll) {
    update();
    world.read_error = EIO;
    update();
    EXPECT_THAT(busy.take_problem(), HasSubstr("cannot be read (Input/output error)"));
    EXPECT_THAT(world.open, IsEmpty());
}

TEST_F(BusyTimeTest, OddTextsOfThePmuAreErrors) {
    for (const std::string name :
         {"type", "cpumask", "events/engine-active-ticks", "events/engine-total-ticks",
          "format/engine_class", "format/function"}) {
        const std::string right = files.text(kFolder + name);
        files.show_instead(kFolder + name, "garbage");
        update();
        EXPECT_THAT(busy.take_problem(), HasSubstr(name + " reads 'garbage'"));
        files.show_instead(kFolder + name, right);
    }
}

TEST(XeBusyTime, IsTheServiceTimeOfAVfThatVgpudManages) {
    const auto files = std::make_shared<FakeSysfs>();
    FakeBus bus{*files};
    bus.load("vfio-pci");
    FakeXe card(bus, XeKernel::k702);
    add_pmu(*files);
    PerfWorld world;
    world.values = {{counter(kActive, kRender, 1), 0}, {counter(kTotal, kRender, 1), 0}};
    ManualClock clock;
    const auto link = std::make_shared<sriov::SriovLink>(
        files, sriov::SriovConfig{.address = "0000:03:00.0", .is_observing = false});
    XeBackend backend(link, clock, std::make_unique<FakePerf>(world));
    ASSERT_TRUE(backend.connect());
    ASSERT_TRUE(backend.provision(wanted(1)));
    ASSERT_TRUE(backend.get_info());
    EXPECT_EQ(backend.get_vf(1)->service_ns, 0u);
    world.values[counter(kActive, kRender, 1)] = kTicksPerSecond / 2;
    world.values[counter(kTotal, kRender, 1)] = kTicksPerSecond / 2;  // PF and VF: 16 ms each
    clock.advance(seconds(1));
    ASSERT_TRUE(backend.get_info());
    EXPECT_EQ(backend.get_vf(1)->service_ns, 500'000'000u);
    EXPECT_EQ(backend.get_vf(2)->service_ns, std::nullopt);
}

}  // namespace
}  // namespace vgpu::daemon::xe
