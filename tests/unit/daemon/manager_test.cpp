// SPDX-License-Identifier: MIT
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::HasSubstr;
using testing::World;

struct BadOptions {
    const char* name;
    Options options;
    ErrorId id;
    const char* cause;
};

class BadCreate : public ::testing::TestWithParam<BadOptions> {};

TEST_P(BadCreate, IsRefusedWithTheRightError) {
    World world;
    const auto made = world.create(GetParam().options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, GetParam().id);
    EXPECT_THAT(made.error().cause, HasSubstr(GetParam().cause));
    EXPECT_TRUE(world.pf().log.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Manager, BadCreate,
    ::testing::Values(
        BadOptions{"weight0", {{"weight", std::uint64_t{0}}}, ErrorId::OutOfRange, "1..10000"},
        BadOptions{"weight10001",
                   {{"weight", std::uint64_t{10'001}}},
                   ErrorId::OutOfRange,
                   "option 'weight' is 10001, not within 1..10000"},
        BadOptions{"negative", {{"weight", std::int64_t{-1}}}, ErrorId::OutOfRange, "-1"},
        BadOptions{"type",
                   {{"weight", std::string("ten")}},
                   ErrorId::WrongType,
                   "'weight' must be a whole number (u, t, i or x), not a value of type 's'"},
        BadOptions{"unknown",
                   {{"wieght", std::uint64_t{1}}},
                   ErrorId::UnknownOption,
                   "this request has no option 'wieght'; did you mean 'weight'?"},
        BadOptions{"unit",
                   {{"vram_bytes", std::uint64_t{1}}},
                   ErrorId::OutOfRange,
                   "not a multiple of 16 MiB"},
        BadOptions{"aperture",
                   {{"vram_bytes", std::uint64_t{512u << 20}}},
                   ErrorId::NoVram,
                   "at most 256 MiB"},
        BadOptions{
            "quantum", {{"quantum_us", std::uint64_t{99}}}, ErrorId::OutOfRange, "100..1000000"},
        BadOptions{
            "cus", {{"cu_mask", std::uint64_t{0x100}}}, ErrorId::NoComputeUnits, "but there are 8"},
        BadOptions{"doorbells",
                   {{"doorbell_pages", std::uint64_t{100'000}}},
                   ErrorId::NoDoorbells,
                   "at most 512"},
        BadOptions{"name", {{"name", std::string("no spaces")}}, ErrorId::InvalidName, "no spaces"},
        BadOptions{"gpuname", {{"name", std::string("gpu0")}}, ErrorId::NameTaken, "is a GPU"},
        BadOptions{"reserved",
                   {{"name", std::string("gpu0-vf9")}},
                   ErrorId::NameTaken,
                   "reserved for VFs"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Manager, NamesAreUniqueOverAllGpus) {
    World world({"gpu0", "gpu1"});
    ASSERT_TRUE(world.create({{"name", std::string("a")}}, "gpu0"));
    const auto taken = world.create({{"name", std::string("a")}}, "gpu1");
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().cause, "'a' is the name of gpu0/vf1");
    ASSERT_TRUE(world.create({{"name", std::string("b")}}, "gpu1"));
    EXPECT_EQ(world.set_vf({"gpu1", 1}, {{"name", std::string("a")}}).error().id,
              ErrorId::NameTaken);
    EXPECT_TRUE(world.set_vf({"gpu1", 1}, {{"name", std::string("b")}}));
}

TEST(Manager, TargetsAreFoundByPathNameAndUuid) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("train")}}));
    const Target wanted{"gpu0", 1};
    EXPECT_EQ(*world.manager->resolve("gpu0/vf1"), wanted);
    EXPECT_EQ(*world.manager->resolve("train"), wanted);
    EXPECT_EQ(*world.manager->resolve(uuid_text(world.gpu().view(1).record.spec.uuid)), wanted);
    EXPECT_EQ(*world.manager->resolve("gpu0"), (Target{"gpu0", 0}));
    const auto wrong = world.manager->resolve("trian");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().cause, "there is no GPU or VF 'trian'; did you mean 'train'?");
    EXPECT_FALSE(world.manager->resolve("gpu0/vf99999999999999999999"));
    EXPECT_FALSE(world.manager->resolve("gpu0/vf-1"));
    EXPECT_FALSE(world.manager->resolve(std::string(100'000, 'x')));
}

TEST(Manager, WeightThatBreaksTheGapLimitIsRefusedAndNothingChanges) {
    World world;
    ASSERT_TRUE(world.create({{"weight", std::uint64_t{100}}}));
    const auto refused =
        world.create({{"weight", std::uint64_t{10'000}}, {"name", std::string("x")}});
    ASSERT_TRUE(refused) << refused.error().cause;
    const auto too_small = world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{1}}});
    ASSERT_FALSE(too_small);
    EXPECT_EQ(too_small.error().id, ErrorId::NoSchedule);
    EXPECT_THAT(too_small.error().cause, HasSubstr("would fit"));
    EXPECT_EQ(world.gpu().view(1).record.spec.weight, 100u);
    EXPECT_TRUE(world.set_gpu({"gpu0"}, {{"max_gap_ms", std::uint64_t{2000}}}));
    EXPECT_TRUE(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{1}}}));
}

TEST(Manager, UnknownGpuAndVfAreNamed) {
    World world;
    EXPECT_EQ(world.create({}, "gpu7").error().id, ErrorId::NoSuchGpu);
    EXPECT_EQ(world.destroy({"gpu0", 9}).error().cause, "gpu0 has no VF 9 in service");
    EXPECT_EQ(world.control({"gpu0", 9}, VGPU_PF_PAUSE, {}).error().id, ErrorId::NoSuchVf);
}

TEST(Errors, EveryRowHasItsOwnNumberAndAFullText) {
    int last = 0;
#define DAEMON_ERROR(row, code, words)                                           \
    EXPECT_GT(code, last);                                                       \
    last = code;                                                                 \
    EXPECT_EQ(row_of(ErrorId::row).name, #row);                                  \
    EXPECT_EQ(text_of(Error{ErrorId::row, "it"}), "VGPU-" #code ": it. " words); \
    EXPECT_EQ(dbus_name_of(ErrorId::row), "org.vgpu1.Error." #row);
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
}

TEST(Manager, AVfForAnyGpuIsMadeOnOneThatIsNotLocked) {
    World world({"gpu0", "gpu1"});
    ASSERT_TRUE(world.create({}, "gpu1"));  // so gpu0 has more VRAM
    ASSERT_TRUE(world.manager->lock("job 1 (apply 'day')", {"gpu0"}, {}));
    const auto made = world.create({}, "");
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(made->gpu, "gpu1");
    world.manager->unlock();
    ASSERT_TRUE(world.manager->lock("job 2 (apply 'day')", {"gpu0", "gpu1"}, {}));
    EXPECT_EQ(world.create({}, "").error().cause, "gpu0 is being changed by job 2 (apply 'day')");
}

TEST(Manager, ADamagedStateConcernsItsGpuAlone) {
    World world({"gpu0", "gpu1"});
    ASSERT_TRUE(world.create({{"name", std::string("a")}}, "gpu0"));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.create({}, "gpu1"));
    world.state.file("gpu0") = "x";
    world.pf("gpu0").log.clear();
    world.start();
    world.pass(std::chrono::seconds(5));
    const auto refused = world.create({}, "gpu0");
    EXPECT_EQ(refused.error().id, ErrorId::StateReadOnly);
    EXPECT_THAT(refused.error().cause, HasSubstr("memory/gpus/gpu0.json"));
    EXPECT_EQ(world.claim({"gpu0", 1}, "x").error().id, ErrorId::StateReadOnly);
    EXPECT_TRUE(world.gpu("gpu0").has_vf(1)) << "it runs and is shown";
    EXPECT_TRUE(world.pf("gpu0").log.empty());
    const auto made = world.create({}, "");
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(made->gpu, "gpu1") << "gpu0 has more VRAM";
    EXPECT_TRUE(world.claim(*made, "x"));
}

}  // namespace
}  // namespace vgpu::daemon
