// SPDX-License-Identifier: MIT
//
// How many VFs of each profile a scheduler may hand out, over a fake of the PF core.
#include "daemon/service/owners/vf_capacity.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::World;

class VfCapacity : public ::testing::Test {
protected:
    VfCapacity() {
        for (const char* name : {"one", "two", "three"})
            EXPECT_TRUE(world.create({{"name", std::string(name)}}));
    }
    [[nodiscard]] CapacityRow row() {
        const auto rows = capacity_of(*world.manager);
        EXPECT_EQ(rows.size(), 1u);
        return rows.empty() ? CapacityRow{} : rows.front();
    }

    World world;
    CapacityRow all_free{.gpu = "gpu0",
                         .gpu_state = GpuState::Ok,
                         .profile = "",
                         .total = 3,
                         .free = 3,
                         .claimed = 0,
                         .unavailable = 0};
};

TEST_F(VfCapacity, VfsWithoutOwnerAreFree) {
    EXPECT_EQ(row(), all_free);
}

TEST_F(VfCapacity, AClaimedVfIsClaimedAndAVfThatAStrangerHasOpenIsUnavailable) {
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:lab:1.0"));
    world.pf().vfs.at(2).attached = 1;
    world.pf().push(VGPU_PF_EVENT_ATTACH, 2, 1);
    world.step();
    EXPECT_EQ(row().claimed, 1u);
    EXPECT_EQ(row().unavailable, 1u);
    EXPECT_EQ(row().free, 1u);
    EXPECT_EQ(row().total, 3u);
}

TEST_F(VfCapacity, NoVfOfAReadOnlyGpuIsFreeNorWillItBecomeFree) {
    world.pf().vfs.at(1).state = VGPU_PF_VF_SCRUBBING;
    world.state.file() = "x";
    world.start();
    EXPECT_EQ(row().total, 3u);
    EXPECT_EQ(row().free, 0u);
}

TEST_F(VfCapacity, AStoppedVfIsUnavailableUntilItResumes) {
    ASSERT_TRUE(world.control({"gpu0", 1}, VGPU_PF_STOP, {}));
    EXPECT_EQ(row().unavailable, 1u);
    ASSERT_TRUE(world.control({"gpu0", 1}, VGPU_PF_RESUME, {}));
    world.step();
    EXPECT_EQ(row(), all_free);
}

TEST_F(VfCapacity, AVfThatIsBeingDestroyedIsUnavailable) {
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_EQ(row().unavailable, 1u);
    EXPECT_EQ(row().free, 2u);
    world.pf().finish_scrub(1);
    world.step();
    EXPECT_EQ(row().total, 2u);
    EXPECT_EQ(row().free, 2u);
}

TEST_F(VfCapacity, NothingOfALostGpuIsFreeAndItsClaimsLast) {
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:lab:1.0"));
    world.pf().is_there = false;
    world.pass(std::chrono::seconds(3));
    EXPECT_NE(row().gpu_state, GpuState::Ok);
    EXPECT_EQ(row().total, 3u);
    EXPECT_EQ(row().claimed, 1u);
    EXPECT_EQ(row().unavailable, 2u);
}

TEST_F(VfCapacity, TheCounterCountsChangesOnly) {
    CapacityCounter counter;
    EXPECT_THAT(counter.update(*world.manager), ElementsAre(all_free));
    counter.update(*world.manager);
    EXPECT_EQ(counter.count(), 1u);
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:lab:1.0"));
    counter.update(*world.manager);
    EXPECT_EQ(counter.count(), 2u);
}

}  // namespace
}  // namespace vgpu::daemon
