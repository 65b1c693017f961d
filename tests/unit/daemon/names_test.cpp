// SPDX-License-Identifier: MIT
//
// Names are one space over all VFs and GPUs on record, there or not; a name that a state has twice
// is told and leads nowhere until one of them has another.
#include "daemon/service/config/profiles.h"
#include "daemon/service/jobs/apply_run.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using ::testing::HasSubstr;
using testing::World;

Options named(const std::string& name) {
    return {{"name", name}};
}

/// As a state is after two vgpuds, each without the other's GPU: VF 1 of both is 'x'.
class TwoOfOneName : public ::testing::Test {
protected:
    TwoOfOneName() {
        EXPECT_TRUE(world.create(named("x"), "gpu0"));
        EXPECT_TRUE(world.create(named("y"), "gpu1"));
        rename_behind_its_back("gpu1", "x");
    }
    void rename_behind_its_back(const std::string& gpu, const std::string& name) {
        GpuRecord record = world.manager->store().gpu(gpu);
        record.vfs.at(1).spec.name = name;
        ASSERT_TRUE(world.manager->store().commit(gpu, record));
        world.start();
        world.step();
    }
    [[nodiscard]] std::vector<std::string> clashes() {
        std::vector<std::string> reported;
        for (const AdminEvent& admin_event : world.manager->take_admin_events())
            if (admin_event.kind == EventKind::NameClash)
                reported.push_back(fmt::format("{}/vf{}", admin_event.gpu, admin_event.vf));
        return reported;
    }

    World world{{"gpu0", "gpu1"}};
};

TEST(Names, OfAGpuThatIsAwayAreNobodyElses) {
    World world({"gpu0", "gpu1"});
    ASSERT_TRUE(world.create(named("x"), "gpu1"));
    world.forget("gpu1");
    world.start();
    const auto refused = world.create(named("x"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NameTaken);
    EXPECT_EQ(refused.error().cause, "'x' is the name of gpu1/vf1, on an absent GPU");
    EXPECT_EQ(world.create(named("gpu1")).error().cause, "'gpu1' is a GPU");
    EXPECT_EQ(world.create(named("gpu1-vf1")).error().id, ErrorId::NameTaken);
    ASSERT_TRUE(world.create(named("y")));
    EXPECT_EQ(world.set_vf({"gpu0", 1}, named("x")).error().id, ErrorId::NameTaken);
    EXPECT_TRUE(world.set_vf({"gpu0", 1}, named("y"))) << "its own";
}

TEST_F(TwoOfOneName, EachIsNotifiedAndReachedByItsPath) {
    EXPECT_THAT(clashes(), ::testing::UnorderedElementsAre("gpu0/vf1", "gpu1/vf1"));
    EXPECT_THAT(world.gpu("gpu0").view(1).condition, HasSubstr("'x' is also the name of gpu1/vf1"));
    const auto refused = world.manager->resolve("x");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::AmbiguousName);
    EXPECT_EQ(refused.error().cause, "'x' is the name of 2 VFs: gpu0/vf1, gpu1/vf1");
    EXPECT_EQ(*world.manager->resolve("gpu1/vf1"), (Target{"gpu1", 1}));
    ASSERT_TRUE(world.set_vf({"gpu1", 1}, named("z")));
    world.step();
    EXPECT_EQ(*world.manager->resolve("x"), (Target{"gpu0", 1}));
    EXPECT_EQ(world.gpu("gpu0").view(1).condition, "");
    EXPECT_TRUE(clashes().empty()) << "told once";
}

TEST_F(TwoOfOneName, LikeAGpuIsReachedByItsPath) {
    rename_behind_its_back("gpu1", "gpu0");
    EXPECT_EQ(*world.manager->resolve("gpu0"), (Target{"gpu0", 0}));
    EXPECT_THAT(world.gpu("gpu1").view(1).condition, HasSubstr("'gpu0' is also the name of a GPU"));
    EXPECT_EQ(*world.manager->resolve("gpu1/vf1"), (Target{"gpu1", 1}));
}

/// The plan of what there is from what `export` writes of it.
Result<ChangePlan> assert_export(World& world, const std::vector<std::string>& gpus) {
    std::vector<GpuInventory> inventories;
    for (const std::string& gpu : gpus) inventories.push_back(*world.gpu(gpu).inventory());
    TRY(const Configuration read,
        parse_configuration(encode_configuration(current_configuration(inventories, "now"))));
    TRY(const auto wanted, desired_gpus(read, "now", gpus));
    return plan_for(*world.manager, "now", wanted, inventories);
}

TEST_F(TwoOfOneName, AnExportIsWhatThereIs) {
    using Gpus = std::vector<std::string>;
    const std::vector<Gpus> choices{Gpus{"gpu0", "gpu1"}, Gpus{"gpu0"}, Gpus{"gpu1"}};
    for (const std::string name : {"x", "gpu0", "gpu0-vf9"}) {
        rename_behind_its_back("gpu1", name);
        for (const auto& gpus : choices) {
            const auto plan = assert_export(world, gpus);
            ASSERT_TRUE(plan) << name << ": " << plan.error().cause;
            EXPECT_TRUE(plan->is_empty()) << name;
        }
    }
}

TEST_F(TwoOfOneName, NobodyGetsItAnew) {
    std::vector<GpuInventory> inventories{*world.gpu("gpu0").inventory(),
                                          *world.gpu("gpu1").inventory()};
    Configuration both = current_configuration(inventories, "now");
    auto& sections = both.configs.at("now");
    sections[0].vfs[0].name = "new";
    sections[1].vfs[0].name = "new";
    const auto wanted = desired_gpus(both, "now", std::vector<std::string>{"gpu0", "gpu1"});
    ASSERT_TRUE(wanted);
    const auto plan = plan_for(*world.manager, "now", *wanted, inventories);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().id, ErrorId::BadConfiguration);
    EXPECT_EQ(plan.error().cause, "'new' is the name of two VFs, of gpu0 and of gpu1");
}

}  // namespace
}  // namespace vgpu::daemon
