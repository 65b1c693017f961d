// SPDX-License-Identifier: MIT
//
// One admission: the same mistake gets the same error, in the same words, from whoever asks for it:
// create, set, a plan (and so assert and apply), the settings and resizes of an apply.
#include "daemon/service/config/capacity.h"

#include "daemon/service/config/change_plan.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <functional>
#include <vector>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using ::testing::HasSubstr;
using testing::World;

/// What is wrong with a VF named 'v' of 64 MiB beside one named 'other'.
struct Mistake {
    std::string name;
    ErrorId error;
    std::string words;  ///< of the cause, which begins with the GPU's name
    std::function<void(VfSpec&)> make;
};

std::vector<Mistake> contracts() {
    using enum ErrorId;
    const auto gang = [](VfSpec& vf) {
        vf.qos.mode = scheduler::SlotMode::Gang;
        vf.qos.min_pct = 10;
        vf.qos.latency_ms = 20;
    };
    return {
        {"phase without gang", OutOfRange, "'v': phase_ms 3 without mode gang",
         [](VfSpec& vf) { vf.qos.phase_ms = 3; }},
        {"min above max", OutOfRange, "'v': min_pct 60 is more than max_pct 50",
         [](VfSpec& vf) { vf.qos.min_pct = 60, vf.qos.max_pct = 50; }},
        {"latency without min", OutOfRange, "'v': latency_ms 10 without min_pct",
         [](VfSpec& vf) { vf.qos.latency_ms = 10; }},
        {"gang without min", OutOfRange, "'v': mode gang without min_pct",
         [](VfSpec& vf) { vf.qos.mode = scheduler::SlotMode::Gang; }},
        {"gang without latency", OutOfRange, "'v': mode gang without latency_ms",
         [gang](VfSpec& vf) { gang(vf), vf.qos.latency_ms = 0; }},
        {"gang with a cap", OutOfRange, "'v': mode gang with max_pct 50",
         [gang](VfSpec& vf) { gang(vf), vf.qos.max_pct = 50; }},
        {"phase beyond its period", OutOfRange, "'v': phase_ms 20 is not within latency_ms 20",
         [gang](VfSpec& vf) { gang(vf), vf.qos.phase_ms = 20; }},
        {"burst below a budget", OutOfRange, "more than burst_ms allows",
         [](VfSpec& vf) { vf.qos.min_pct = 10, vf.qos.max_pct = 10, vf.qos.latency_ms = 1000; }},
        {"too much reserved", NoSchedule, "'v': min_pct 95 every",
         [](VfSpec& vf) { vf.qos.min_pct = 95; }},
        {"too little reserved", NoSchedule, "the shortest run",
         [](VfSpec& vf) { vf.qos.min_pct = 1, vf.qos.latency_ms = 1; }},
        {"too small a weight", NoSchedule, "'v' with weight 1 of 10001",
         [](VfSpec& vf) { vf.weight = 1; }},
        {"a low priority class without a reservation", NoSchedule, "requires a reservation",
         [](VfSpec& vf) { vf.qos.priority_class = scheduler::PriorityClass::Low; }},
    };
}

std::vector<Mistake> resources() {
    using enum ErrorId;
    return {
        {"no multiple", OutOfRange, "is not a multiple of 16 MiB",
         [](VfSpec& vf) { vf.resources.vram_bytes = 100 * FakePf::kMiB; }},
        {"more than a VF can have", NoVram, "one VF can have at most 256 MiB",
         [](VfSpec& vf) { vf.resources.vram_bytes = 512 * FakePf::kMiB; }},
        {"doorbells", NoDoorbells, "513 wanted for 'v'",
         [](VfSpec& vf) { vf.resources.doorbell_pages = 513; }},
        {"compute units", NoComputeUnits, "mask 0x100 wanted for 'v'",
         [](VfSpec& vf) { vf.resources.cu_mask = 0x100; }},
    };
}

VfSpec sound() {
    return {.name = "v", .resources = {.vram_bytes = 64 * FakePf::kMiB}};
}

CreateRequest request_for(const VfSpec& vf) {
    return {.spec = vf};
}

/// A GPU on which `v` is to be made; 'other' is there.
class Admissions {
public:
    explicit Admissions(const Mistake& mistake) : mistake_(mistake) {
        mistake.make(wrong_);
        EXPECT_TRUE(
            world_.create({{"name", std::string("other")}, {"weight", std::uint64_t{10'000}}}));
    }

    void expect_refused(const std::string& entry, const std::optional<Error>& error) {
        const std::string where = mistake_.name + " by " + entry;
        ASSERT_TRUE(error) << where;
        EXPECT_EQ(error->id, mistake_.error) << where << ": " << error->cause;
        EXPECT_THAT(error->cause, ::testing::StartsWith("gpu0: ")) << where;
        EXPECT_THAT(error->cause, HasSubstr(mistake_.words)) << where;
        if (!cause_.empty()) {
            EXPECT_EQ(error->cause, cause_) << where << ": one mistake, one text";
        }
        cause_ = error->cause;
    }
    template <typename T> static std::optional<Error> error_of(const Result<T>& result) {
        return result ? std::nullopt : std::optional(result.error());
    }

    void by_create() {
        expect_refused("create", error_of(world_.gpu().create(request_for(wrong_))));
        EXPECT_FALSE(world_.gpu().has_vf(2));
    }
    void by_plan() {
        const auto inventory = world_.gpu().inventory();
        ASSERT_TRUE(inventory);
        const DesiredGpu wanted{.gpu = "gpu0",
                                .vfs = {{.spec = inventory->vfs.at(0).spec}, {.spec = wrong_}}};
        expect_refused("plan", error_of(make_change_plan({&wanted, 1}, {&*inventory, 1},
                                                         {.gpus = {"gpu0"}, .names = {}})));
    }
    void make_it_soundly() { ASSERT_TRUE(world_.gpu().create(request_for(sound()))); }
    void by_set() { expect_refused("set", error_of(world_.gpu().change(2, settings_of(wrong_)))); }
    void by_settings() {
        Settings settings;
        settings.vfs[2] = settings_of(wrong_);
        expect_refused("settings", error_of(world_.gpu().configure(settings)));
    }
    void by_resize() {
        expect_refused("resize", error_of(world_.gpu().resize(2, wrong_.resources, Force::Yes)));
    }

private:
    Mistake mistake_;
    World world_;
    VfSpec wrong_ = sound();
    std::string cause_;
};

TEST(OneAdmission, OfAContractIsOneWhoeverAsks) {
    for (const Mistake& mistake : contracts()) {
        Admissions admissions(mistake);
        admissions.by_create();
        admissions.by_plan();
        admissions.make_it_soundly();
        admissions.by_plan();
        admissions.by_set();
        admissions.by_settings();
    }
}

TEST(OneAdmission, OfResourcesIsOneWhoeverAsks) {
    for (const Mistake& mistake : resources()) {
        Admissions admissions(mistake);
        admissions.by_create();
        admissions.by_plan();
        admissions.make_it_soundly();
        admissions.by_resize();
    }
}

/// Number of VFs and the sum of their VRAM: what is free now and what there is are told apart, the
/// error is one.
TEST(OneAdmission, OfMoreThanThereIsHasOneError) {
    World world;
    world.pf().info.total_vfs = 1;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    EXPECT_EQ(world.create({{"name", std::string("b")}}).error().id, ErrorId::NoFreeVf);
    const auto inventory = world.gpu().inventory();
    ASSERT_TRUE(inventory);
    std::vector<VfSpec> two{inventory->vfs.at(0).spec, sound()};
    EXPECT_EQ(check_capacity(*inventory, {}, two).error().id, ErrorId::NoFreeVf);
    GpuInventory small = *inventory;
    small.total_vfs = 2;
    small.vram_bytes = 64 * FakePf::kMiB;
    EXPECT_EQ(check_capacity(small, {}, two).error().id, ErrorId::NoVram);
}

}  // namespace
}  // namespace vgpu::daemon
