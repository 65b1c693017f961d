// SPDX-License-Identifier: MIT
//
// Two real GPUs under one vgpud; the vgpu-pf of one is stopped by SIGSTOP, as a PF core that hangs.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <csignal>
#include <future>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::HasSubstr;
using std::chrono_literals::operator""s;

struct TwoGpus {
    test::GpuStack quick{{.vfs = 2, .vram_mb = 256}};
    test::GpuStack slow{{.vfs = 2, .vram_mb = 256}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}},
                {{"id": "gpu1", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            quick.dir().file("uapi.sock"), quick.dir().path().string(),
            slow.dir().file("uapi.sock"), slow.dir().path().string());
    }
};

class SlowPf : private TwoGpus, public BusFixture {
protected:
    SlowPf() : BusFixture(Setup{.gpus = config()}) {}
    ~SlowPf() override { slow.pf_process().signal(SIGCONT); }

    void stop() { slow.pf_process().signal(SIGSTOP); }
    void go_on() { slow.pf_process().signal(SIGCONT); }

    [[nodiscard]] test::Completed create(const std::string& name, const std::string& gpu) const {
        return ctl({"create", "--name", name, "--gpu", gpu, "--vram", "16M"});
    }
    [[nodiscard]] std::string gpu_property(const std::string& gpu, const std::string& name) const {
        const auto connection = connect();
        const auto proxy = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1/gpu/" + gpu);
        proxy->finishRegistration();
        return proxy->getProperty(name).onInterface("org.vgpu1.Gpu").get<std::string>();
    }
    void wait_for_state(const std::string& gpu, const std::string& state) {
        test::wait_for(gpu + " to be " + state, test::milliseconds(20'000),
                       [&] { return gpu_property(gpu, "State") == state; });
    }
};

TEST_F(SlowPf, HoldsUpOnlyRequestsForItsOwnGpuAndComesBack) {
    ASSERT_EQ(create("before", "gpu1").status, 0);
    stop();
    auto waiting = std::async(std::launch::async, [this] { return create("late", "gpu1"); });
    // properties of both GPUs, and requests of the other one, while nobody answers for gpu1
    EXPECT_EQ(gpu_property("gpu0", "State"), "ok");
    EXPECT_EQ(gpu_property("gpu1", "Id"), "gpu1");
    EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout) << "vgpu-pf is not stopped";
    EXPECT_EQ(create("quick", "gpu0").status, 0);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 2u);
    EXPECT_EQ(ctl({"pause", "quick"}).status, 0);

    const auto refused = waiting.get();
    EXPECT_EQ(refused.status, 7);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-601: "));
    EXPECT_THAT(refused.out, HasSubstr("no answer from vgpu-pf"));
    wait_for_state("gpu1", "pf-lost");
    EXPECT_EQ(gpu_property("gpu0", "State"), "ok");
    EXPECT_EQ(create("again", "gpu1").status, 7);

    go_on();
    wait_for_state("gpu1", "ok");
    EXPECT_EQ(create("again", "gpu1").status, 0);
    EXPECT_EQ(ctl({"destroy", "before"}).status, 0);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 2u) << "nothing was made behind our back";
}

TEST_F(SlowPf, DoesNotKeepVgpudFromEnding) {
    stop();
    auto waiting = std::async(std::launch::async, [this] { return create("late", "gpu1"); });
    EXPECT_EQ(create("quick", "gpu0").status, 0);
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_NE(waiting.get().status, 0);
}

}  // namespace
}  // namespace vgpu::daemon
