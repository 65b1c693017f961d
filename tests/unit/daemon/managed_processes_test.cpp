// SPDX-License-Identifier: MIT
#include "daemon/service/gpu/managed_processes.h"

#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <map>
#include <set>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class FakeProcesses final : public ProcessPort {
public:
    Result<ProcessId> start(const ProcessSpec& spec) override {
        if (fails) return fail(ErrorId::System, "cannot fork");
        started.push_back(spec.label);
        const ProcessId id{.pid = next_pid++, .start_time = 1};
        notes[spec.label] = id;
        alive.insert(id.pid);
        return id;
    }
    std::optional<ProcessId> find(const ProcessSpec& spec) override {
        const auto at = notes.find(spec.label);
        if (at == notes.end() || !alive.contains(at->second.pid)) return {};
        return at->second;
    }
    std::optional<std::string> end_of(const ProcessId& id) override {
        return alive.contains(id.pid) ? std::nullopt : std::optional(end);
    }
    void trim_log(const ProcessSpec&) override {}
    bool socket_exists(const std::string& path) override { return sockets.contains(path); }
    void remove_stale(const std::string& path) override { sockets.erase(path); }

    std::vector<std::string> started;
    std::map<std::string, ProcessId> notes;
    std::set<int> alive;
    std::set<std::string> sockets;
    int next_pid = 100;
    bool fails = false;
    std::string end;  ///< how those that are not alive have ended
};

class ManagedProcessesTest : public ::testing::Test {
protected:
    ManagedProcessesTest() {
        config.run_dir = "/run";
        gpu.id = "gpu0";
        gpu.softgpu = SoftgpuConfig{};
    }
    ManagedProcesses make(Supervision supervision) { return {config, gpu, processes, supervision}; }

    Config config;
    GpuConfig gpu;
    FakeProcesses processes;
};

TEST_F(ManagedProcessesTest, PfStartsOnceTheDeviceListens) {
    ManagedProcesses managed_processes = make(Supervision::Off);
    EXPECT_THAT(managed_processes.step(0ms), HasSubstr("vgpu-pf waits for /run/gpu0/pf.sock"));
    EXPECT_THAT(processes.started, ElementsAre("softgpu"));
    processes.sockets.insert("/run/gpu0/pf.sock");
    EXPECT_EQ(managed_processes.step(20ms), "");
    EXPECT_THAT(processes.started, ElementsAre("softgpu", "vgpu-pf"));
    EXPECT_EQ(managed_processes.pf_pid(), 101);
}

TEST_F(ManagedProcessesTest, StaleSocketsOfVfsAreRemovedBeforeSoftgpuStartsButNotBeforeVgpuPf) {
    processes.sockets = {"/run/gpu0/vf1.sock", "/run/gpu0/vf16.sock", "/run/gpu0/uapi.sock"};
    ManagedProcesses managed_processes = make(Supervision::Off);
    managed_processes.step(0ms);
    EXPECT_THAT(processes.sockets, ElementsAre("/run/gpu0/uapi.sock"));
    processes.sockets = {"/run/gpu0/pf.sock", "/run/gpu0/vf1.sock"};
    managed_processes.step(20ms);
    EXPECT_EQ(processes.started.size(), 2u);
    EXPECT_TRUE(processes.sockets.contains("/run/gpu0/vf1.sock")) << "softgpu serves it";
}

TEST_F(ManagedProcessesTest, RunningOnesAreAdopted) {
    ManagedProcesses first = make(Supervision::Off);
    first.step(0ms);
    processes.sockets.insert("/run/gpu0/pf.sock");
    first.step(20ms);
    ManagedProcesses second = make(Supervision::Off);
    EXPECT_EQ(second.step(1s), "");
    EXPECT_EQ(processes.started.size(), 2u);
    EXPECT_EQ(second.softgpu_pid(), 100);
}

TEST_F(ManagedProcessesTest, DeadOneStaysDeadWithoutSupervision) {
    ManagedProcesses managed_processes = make(Supervision::Off);
    managed_processes.step(0ms);
    processes.alive.clear();
    EXPECT_THAT(managed_processes.step(10s),
                HasSubstr("softgpu (pid 100) ended; see /run/gpu0/softgpu.log"));
    EXPECT_FALSE(managed_processes.has_failed()) << "it had started";
    managed_processes.step(20s);
    EXPECT_THAT(processes.started, ElementsAre("softgpu"));
    EXPECT_EQ(managed_processes.softgpu_pid(), 0);
}

TEST_F(ManagedProcessesTest, SupervisionRestartsWithGrowingDelay) {
    ManagedProcesses managed_processes = make(Supervision::On);
    int starts_in_a_minute = 0;
    for (Nanoseconds now{0}; now < 60s; now += 20ms) {
        managed_processes.step(now);
        processes.alive.clear();
    }
    starts_in_a_minute = static_cast<int>(processes.started.size());
    EXPECT_GE(starts_in_a_minute, 10);
    EXPECT_LE(starts_in_a_minute, 25);
}

TEST_F(ManagedProcessesTest, FailureToStartIsReportedAndTriedAgain) {
    ManagedProcesses managed_processes = make(Supervision::Off);
    processes.fails = true;
    EXPECT_THAT(managed_processes.step(0ms), HasSubstr("softgpu: cannot fork; vgpud tries again"));
    EXPECT_TRUE(managed_processes.has_failed());
    processes.fails = false;
    EXPECT_THAT(managed_processes.step(5s), HasSubstr("cannot fork"))
        << "until it has run for a while";
    EXPECT_THAT(processes.started, ElementsAre("softgpu"));
    processes.sockets = {"/run/gpu0/pf.sock"};
    managed_processes.step(7s);
    EXPECT_FALSE(managed_processes.has_failed());
}

TEST_F(ManagedProcessesTest, AProgramThatEndsAtOnceHasFailedAndIsTriedAgainLaterAndLater) {
    ManagedProcesses managed_processes = make(Supervision::On);
    processes.end = "with exit status 3";
    for (Nanoseconds now{0}; now < 30s; now += 20ms) {
        const std::string words = managed_processes.step(now);
        processes.alive.clear();
        if (now == 0ms) continue;
        EXPECT_TRUE(managed_processes.has_failed()) << "at every step, also between two tries";
        EXPECT_THAT(words, HasSubstr("ended with exit status 3; see /run/gpu0/softgpu.log"));
    }
    EXPECT_GE(processes.started.size(), 8u);
    EXPECT_LE(processes.started.size(), 14u);
}

/// Of a GPU whose programs fail, and start again.
TEST_F(ManagedProcessesTest, AGpuIsReportedAsFailedAndAsStartingAgain) {
    testing::World world;
    world.pf().is_there = false;
    auto own = std::make_unique<ManagedProcesses>(config, gpu, processes, Supervision::Off);
    GpuModel model(gpu, GpuPaths{.directory = "", .uapi_socket = "u", .vf_socket_dir = ""},
                   {.backend = std::make_unique<testing::FakePfPort>(world.pf()),
                    .managed_processes = std::move(own),
                    .store = world.manager->store(),
                    .clock = world.clock});
    processes.fails = true;
    const auto kinds_after = [&](Nanoseconds time) {
        std::vector<EventKind> kinds;
        for (Nanoseconds passed{0}; passed < time; passed += 100ms) {
            world.clock.advance(100ms);
            model.step();
        }
        for (const AdminEvent& event : model.take_admin_events()) kinds.push_back(event.kind);
        return kinds;
    };
    EXPECT_THAT(kinds_after(1s), ElementsAre(EventKind::Failed));
    processes.fails = false;
    processes.sockets = {"/run/gpu0/pf.sock"};
    EXPECT_THAT(kinds_after(10s), ElementsAre(EventKind::Starting));
}

TEST_F(ManagedProcessesTest, StaleSocketDoesNotLetThePfStartEarly) {
    processes.sockets.insert("/run/gpu0/pf.sock");
    ManagedProcesses managed_processes = make(Supervision::Off);
    managed_processes.step(0ms);
    EXPECT_THAT(processes.started, ElementsAre("softgpu"));
}

}  // namespace
}  // namespace vgpu::daemon
