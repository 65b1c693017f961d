// SPDX-License-Identifier: MIT
//
// GpuThread under GpuHost: two GPUs, each with its thread, one main loop, one state.
#include "daemon/adapters/gpu_thread.h"

#include "daemon/adapters/system_clock.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <map>
#include <semaphore>
#include <thread>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakePf;
using testing::World;
using std::chrono_literals::operator""s;

class GpuThreads : public ::testing::Test {
protected:
    GpuThreads() {
        for (const auto& gpu : world.manager->gpus())
            gpu->start(std::make_unique<adapters::GpuThread>(clock), [this] { changes.release(); });
    }
    ~GpuThreads() override { world.manager.reset(); }

    void create(const std::string& gpu, const std::string& name) {
        world.manager->create(
            gpu, {{"name", name}, {"vram_bytes", std::uint64_t{64 * FakePf::kMiB}}},
            [this, gpu, requester = std::this_thread::get_id()](Result<Target> made) {
                EXPECT_EQ(std::this_thread::get_id(), requester);
                made_on[gpu].push_back(made ? made->vf : 0);
                ++answers;
            });
    }

    /// The main loop, until `count` answers have come; looks at both GPUs all the while.
    void loop_until(int count) {
        std::uint64_t seen = 0;
        while (answers < count) {
            if (!changes.try_acquire_for(20s)) FAIL() << answers << " of " << count << " answers";
            for (const auto& gpu : world.manager->gpus()) {
                (void)gpu->is_newer(seen);
                EXPECT_LE(gpu->snapshot()->vfs.size(), 4u);
            }
            world.manager->finish();
        }
    }

    World world{{"gpu0", "gpu1"}};
    adapters::SystemClock clock;
    std::counting_semaphore<> changes{0};
    std::map<std::string, std::vector<std::uint32_t>> made_on;
    int answers = 0;
};

TEST_F(GpuThreads, RequestsOfTwoGpusAreAnsweredInTheMainLoopInTheirOrder) {
    for (int i = 0; i < 4; ++i) {
        create("gpu0", "a" + std::to_string(i));
        create("gpu1", "b" + std::to_string(i));
    }
    loop_until(8);
    EXPECT_THAT(made_on["gpu0"], ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(made_on["gpu1"], ElementsAre(1, 2, 3, 4));
    EXPECT_TRUE(world.manager->resolve("a3"));
    EXPECT_EQ(world.manager->find_gpu("gpu1")->snapshot()->vfs.size(), 4u);
    EXPECT_EQ(world.manager->store().records().at("gpu1").vfs.size(), 4u) << "on disk, too";
}

TEST_F(GpuThreads, AThreadThatIsStoppedAmidRequestsLeavesTheStateWhole) {
    for (int i = 0; i < 4; ++i) create(i % 2 == 0 ? "gpu0" : "gpu1", "vm" + std::to_string(i));
    world.manager.reset();  // some requests are done, some are not
    const auto made = [this](const std::string& gpu) { return world.pf(gpu).vfs.size(); };
    world.start();
    EXPECT_EQ(world.manager->store().records()["gpu0"].vfs.size(), made("gpu0"));
    EXPECT_EQ(world.manager->store().records()["gpu1"].vfs.size(), made("gpu1"));
}

}  // namespace
}  // namespace vgpu::daemon
