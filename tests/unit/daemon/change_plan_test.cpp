// SPDX-License-Identifier: MIT
//
// Plans over a model: which steps, in which order, and what is said when it cannot be.
#include "daemon/service/config/change_plan.h"

#include "daemon/service/config/capacity.h"
#include "daemon/service/config/profiles.h"
#include "tests/unit/daemon/core_abilities.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = 1u << 20;

GpuInventory empty_gpu(const std::string& id = "gpu0") {
    return {.id = id,
            .vram_bytes = 256 * kMiB,
            .abilities = testing::core_abilities(128 * kMiB),
            .total_vfs = 8};
}

VfSpec vf_of(const std::string& name, std::uint64_t mib, std::uint32_t weight = 100) {
    return {.name = name, .resources = {.vram_bytes = mib * kMiB}, .weight = weight};
}

/// gpu0 with these VFs, numbered from 1.
GpuInventory gpu_with(const std::vector<VfSpec>& vfs) {
    GpuInventory gpu = empty_gpu();
    for (const VfSpec& vf : vfs)
        gpu.vfs.push_back({.vf = static_cast<std::uint32_t>(gpu.vfs.size() + 1), .spec = vf});
    return gpu;
}

DesiredGpu desired_of(const std::vector<VfSpec>& vfs, const std::string& gpu = "gpu0") {
    DesiredGpu wanted{.gpu = gpu};
    for (const VfSpec& vf : vfs) wanted.vfs.push_back({.spec = vf});
    return wanted;
}

const Surroundings kAround{.gpus = {"gpu0", "gpu1"}, .names = {{"elsewhere", "gpu1/vf4"}}};

Result<ChangePlan> plan_of(const GpuInventory& gpu, const DesiredGpu& wanted) {
    return make_change_plan(std::vector{wanted}, std::vector{gpu}, kAround);
}

/// "create gpu0/vf2", without what is kept.
std::vector<std::string> steps_of(const Result<ChangePlan>& plan) {
    if (!plan) return {"error: " + plan.error().cause};
    std::vector<std::string> steps;
    for (const Step& step : plan->steps)
        if (step.action != Action::Keep)
            steps.push_back(fmt::format("{} {}", name_of(step.action), target_of(step)));
    return steps;
}

TEST(ChangePlan, ANewVfGetsNoNumberInUseIfThereIsAnother) {
    GpuInventory gpu = gpu_with({vf_of("a", 64)});
    gpu.used_numbers = {2, 3};
    EXPECT_THAT(steps_of(plan_of(gpu, desired_of({vf_of("a", 64), vf_of("b", 64)}))),
                ElementsAre("create gpu0/vf4"));
    gpu.total_vfs = 2;
    EXPECT_THAT(steps_of(plan_of(gpu, desired_of({vf_of("b", 64)}))),
                ElementsAre("destroy gpu0/vf1", "create gpu0/vf1"));
    EXPECT_THAT(steps_of(plan_of(gpu, desired_of({vf_of("a", 64), vf_of("b", 64)}))),
                ElementsAre("create gpu0/vf2"))
        << "it is the only one; its user may be gone when the step begins";
}

TEST(ChangePlan, WhatIsAsWantedIsKept) {
    const auto plan = plan_of(gpu_with({vf_of("a", 64)}), desired_of({vf_of("a", 64)}));
    ASSERT_TRUE(plan) << plan.error().cause;
    EXPECT_TRUE(plan->is_empty());
    ASSERT_EQ(plan->steps.size(), 1u);
    EXPECT_EQ(plan->steps.front().action, Action::Keep);
    EXPECT_EQ(plan->disruption(), Disruption::None);
}

TEST(ChangePlan, WhatLosesNothingComesFirst) {
    const GpuInventory gpu = gpu_with({vf_of("a", 32), vf_of("b", 32), vf_of("c", 32)});
    const auto plan =
        plan_of(gpu, desired_of({vf_of("a", 32, 300), vf_of("b", 64), vf_of("d", 32)}));
    EXPECT_THAT(steps_of(plan), ElementsAre("set gpu0/vf1", "create gpu0/vf4", "resize gpu0/vf2",
                                            "destroy gpu0/vf3"));
    EXPECT_EQ(plan->disruption(), Disruption::VfLoss);
}

TEST(ChangePlan, ADestroyComesEarlierOnlyForWhatNeedsItsRoom) {
    const GpuInventory gpu = gpu_with({vf_of("a", 128), vf_of("b", 96)});
    const auto plan = plan_of(gpu, desired_of({vf_of("b", 96), vf_of("c", 128)}));
    EXPECT_THAT(steps_of(plan), ElementsAre("destroy gpu0/vf1", "create gpu0/vf1"));
    EXPECT_THAT(plan->steps.at(1).why, HasSubstr("makes room for 'c'"));
}

TEST(ChangePlan, VfsThatTradeSizesShrinkBeforeTheyGrow) {
    const GpuInventory gpu = gpu_with({vf_of("a", 64), vf_of("b", 128), vf_of("c", 64)});
    const auto plan = plan_of(gpu, desired_of({vf_of("a", 128), vf_of("b", 64), vf_of("c", 64)}));
    EXPECT_THAT(steps_of(plan), ElementsAre("resize gpu0/vf2", "resize gpu0/vf1"));
    EXPECT_THAT(plan->steps.back().why, HasSubstr("VRAM can only change while its driver"));
}

TEST(ChangePlan, WeightsThatOnlyWorkTogetherAreChangedTogether) {
    GpuInventory gpu = gpu_with({vf_of("a", 16, 1), vf_of("b", 16, 1)});
    gpu.settings.max_gap_ms = 2;
    const DesiredGpu wanted = desired_of({vf_of("a", 16, 9000), vf_of("b", 16, 9000)});
    EXPECT_THAT(steps_of(plan_of(gpu, wanted)), ElementsAre("set gpu0/vf1", "set gpu0/vf2"));
}

TEST(ChangePlan, AVfOfAnotherNameIsRenamedIfTheConfigurationSaysSo) {
    const GpuInventory gpu = gpu_with({vf_of("old", 64, 100)});
    DesiredGpu wanted = desired_of({vf_of("new", 64, 200)});
    EXPECT_THAT(steps_of(plan_of(gpu, wanted)), ElementsAre("create gpu0/vf2", "destroy gpu0/vf1"));
    wanted.vfs.front().was = "old";
    const auto plan = plan_of(gpu, wanted);
    EXPECT_THAT(steps_of(plan), ElementsAre("rename gpu0/vf1", "set gpu0/vf1"));
    EXPECT_EQ(plan->disruption(), Disruption::None);
}

TEST(ChangePlan, AVfThatMovesToAnotherGpuGoesBeforeItComes) {
    const std::vector<GpuInventory> gpus{gpu_with({vf_of("a", 64)}), empty_gpu("gpu1")};
    const std::vector<DesiredGpu> wanted{desired_of({}), desired_of({vf_of("a", 64)}, "gpu1")};
    const auto plan = make_change_plan(wanted, gpus, {.gpus = {"gpu0", "gpu1"}, .names = {}});
    EXPECT_THAT(steps_of(plan), ElementsAre("destroy gpu0/vf1", "create gpu1/vf1"));
}

TEST(ChangePlan, AllOfSomethingIsTheSameAsNoLimit) {
    VfSpec all = vf_of("a", 64);
    all.resources.cu_mask = 0xff;
    all.resources.doorbell_pages = 512;
    EXPECT_THAT(steps_of(plan_of(gpu_with({vf_of("a", 64)}), desired_of({all}))), IsEmpty());
}

TEST(ChangePlan, NewVfsAreNumberedInTheOrderOfTheDocumentAroundNumbersThatAreKept) {
    const auto wanted = desired_of({vf_of("a", 16), vf_of("gpu0-vf3", 16), vf_of("b", 16)});
    EXPECT_THAT(steps_of(plan_of(empty_gpu(), wanted)),
                ElementsAre("create gpu0/vf1", "create gpu0/vf3", "create gpu0/vf4"));
    const auto last = desired_of({vf_of("gpu0-vf8", 16), vf_of("a", 16)});
    EXPECT_THAT(steps_of(plan_of(empty_gpu(), last)),
                ElementsAre("create gpu0/vf8", "create gpu0/vf1"));
}

TEST(ChangePlan, NamesOfOthersAndKeptNamesAreRefused) {
    const GpuInventory gpu = gpu_with({vf_of("a", 16), vf_of("gpu0-vf2", 16)});
    const auto refusal = [&](const std::string& name) {
        return steps_of(plan_of(gpu, desired_of({vf_of(name, 16)}))).front();
    };
    EXPECT_THAT(refusal("elsewhere"), HasSubstr("is the name of gpu1/vf4"));
    EXPECT_THAT(refusal("gpu1"), HasSubstr("'gpu1' is a GPU"));
    EXPECT_THAT(refusal("gpu0-vf99"), HasSubstr("is reserved for VFs without a name"));
    EXPECT_THAT(refusal("gpu1-vf1"), HasSubstr("is reserved for VFs without a name"));
    EXPECT_THAT(steps_of(plan_of(gpu, desired_of({vf_of("gpu0-vf2", 16), vf_of("a", 16)}))),
                IsEmpty());
    EXPECT_THAT(steps_of(plan_of(empty_gpu(), desired_of({vf_of("gpu0-vf3", 16)}))),
                ElementsAre("create gpu0/vf3"));
}

/// Of an apply that is recovered: names say nothing then, and what was there is to be so again.
TEST(ChangePlan, AVfWhoseUuidIsKnownIsFoundByItAndMadeExactlySo) {
    const Uuid one = make_uuid(), two = make_uuid();
    GpuInventory gpu = gpu_with({vf_of("b", 64), vf_of("a", 64)});
    gpu.vfs[0].spec.uuid = one;
    gpu.vfs[0].spec.profile = "large";
    DesiredGpu wanted = desired_of({vf_of("a", 64), vf_of("b", 64)});
    wanted.vfs[0].spec.uuid = one;
    wanted.vfs[0].spec.profile = "small";
    wanted.vfs[1].spec.uuid = two;
    wanted.vfs[1].vf = 5;
    wanted.vfs[1].owner = {.name = "vm", .generation = 3};
    const auto plan = plan_of(gpu, wanted);
    EXPECT_THAT(steps_of(plan), ElementsAre("destroy gpu0/vf2", "rename gpu0/vf1", "set gpu0/vf1",
                                            "create gpu0/vf5"));
    EXPECT_EQ(plan->steps.at(2).to->profile, "small");
    EXPECT_EQ(plan->steps.back().to->uuid, two);
    EXPECT_EQ(plan->steps.back().owner, wanted.vfs[1].owner);
}

TEST(ChangePlan, UseOfAVfIsNamedWithTheStepThatWouldEndIt) {
    GpuInventory gpu = gpu_with({vf_of("a", 64), vf_of("b", 64)});
    gpu.vfs.at(0).is_attached = true;
    gpu.vfs.at(1).owner.name = "libvirt:x";
    const auto plan = plan_of(gpu, desired_of({vf_of("a", 32)}));
    ASSERT_EQ(steps_of(plan).size(), 2u);
    EXPECT_EQ(plan->steps.at(0).in_use, "a client has it open");
    EXPECT_EQ(plan->steps.at(1).in_use, "it belongs to 'libvirt:x'");
    EXPECT_EQ(plan_of(gpu, desired_of({vf_of("a", 64, 7), vf_of("b", 64)}))->steps.at(1).in_use, "")
        << "a weight disturbs nobody";
    gpu.vfs.at(1).is_lease_over = true;
    EXPECT_EQ(plan_of(gpu, desired_of({vf_of("a", 32)}))->steps.at(1).in_use, "")
        << "nobody's any more";
}

struct Shortage {
    const char* name;
    std::vector<VfSpec> wanted;
    ErrorId id;
    const char* cause;
};

class DoesNotFit : public ::testing::TestWithParam<Shortage> {};

TEST_P(DoesNotFit, NamesResourceShortageAndWhatWould) {
    const auto plan = plan_of(empty_gpu(), desired_of(GetParam().wanted));
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().id, GetParam().id);
    EXPECT_EQ(plan.error().cause, GetParam().cause);
}

VfSpec with_doorbells(std::uint32_t pages) {
    VfSpec vf = vf_of("a", 16);
    vf.profile = "p";
    vf.resources.doorbell_pages = pages;
    return vf;
}

VfSpec with_cus(std::uint64_t mask) {
    VfSpec vf = vf_of("a", 16);
    vf.resources.cu_mask = mask;
    return vf;
}

INSTANTIATE_TEST_SUITE_P(
    ChangePlan, DoesNotFit,
    ::testing::Values(
        Shortage{"vram",
                 {vf_of("a", 128), vf_of("b", 96), vf_of("c", 96)},
                 ErrorId::NoVram,
                 "gpu0: VRAM: 320 MiB wanted by 3 VFs, 256 MiB there for VFs, short by 64 MiB; "
                 "leave out 'b' (96 MiB), or shrink the 2 VFs of 96 MiB by 32 MiB each to 64 MiB"},
        Shortage{"vram_of_many",
                 {vf_of("a", 128), vf_of("b", 128), vf_of("c", 128), vf_of("d", 128)},
                 ErrorId::NoVram,
                 "gpu0: VRAM: 512 MiB wanted by 4 VFs, 256 MiB there for VFs, short by 256 MiB; "
                 "leave out 'd', 'c', or shrink the 4 VFs of 128 MiB by 64 MiB each to 64 MiB"},
        Shortage{"bar",
                 {vf_of("a", 144)},
                 ErrorId::NoVram,
                 "gpu0: VRAM: 144 MiB wanted for 'a', but one VF can have at most 128 MiB (its "
                 "BAR0), short by 16 MiB; 128 MiB would fit, or 2 VFs of 80 MiB each"},
        Shortage{"bar_of_all",
                 {vf_of("a", 512)},
                 ErrorId::NoVram,
                 "gpu0: VRAM: 512 MiB wanted for 'a', but one VF can have at most 128 MiB (its "
                 "BAR0), short by 384 MiB; 128 MiB would fit"},
        Shortage{
            "unit",
            {vf_of("a", 100)},
            ErrorId::OutOfRange,
            "gpu0: VRAM: 100 MiB for 'a' is not a multiple of 16 MiB; 96 MiB or 112 MiB would fit"},
        Shortage{"numbers",
                 {vf_of("a", 16), vf_of("b", 16), vf_of("c", 16), vf_of("d", 16), vf_of("e", 16),
                  vf_of("f", 16), vf_of("g", 16), vf_of("h", 16), vf_of("i", 16)},
                 ErrorId::NoFreeVf,
                 "gpu0: VF numbers: 9 VFs wanted, 8 exist, short by 1; leave out that many"},
        Shortage{"doorbells",
                 {with_doorbells(600)},
                 ErrorId::NoDoorbells,
                 "gpu0: doorbell pages: 600 wanted for 'a' (profile 'p'), but one VF can have at "
                 "most 512, short by 88; 512 would fit, also by leaving doorbell_pages out"},
        Shortage{"cus",
                 {with_cus(0x100)},
                 ErrorId::NoComputeUnits,
                 "gpu0: compute units: mask 0x100 wanted for 'a', but there are 8 (mask 0xff), "
                 "short by 1; all 8 would fit, also by leaving compute_units out"},
        Shortage{"some_cus",
                 {with_cus(0xf0f)},
                 ErrorId::NoComputeUnits,
                 "gpu0: compute units: mask 0xf0f wanted for 'a', but there are 8 (mask 0xff), "
                 "short by 4; mask 0xf or all 8 would fit, also by leaving compute_units out"},
        Shortage{"schedule",
                 {vf_of("a", 16, 1), vf_of("b", 16, 10'000)},
                 ErrorId::NoSchedule,
                 "gpu0: schedule: 'a' with weight 1 of 10001 would be off the engine for 1000 ms "
                 "even with slices of 100 us; max_gap_ms is 60: weight 17 or max_gap_ms 1250 would "
                 "fit"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(ChangePlan, NamesWhatThePfKeepsAndWhatTheVfsAreGiven) {
    GpuInventory gpu = gpu_with({vf_of("a", 64)});
    gpu.pf_vram_bytes = 16 * kMiB;
    const auto plan = plan_of(gpu, desired_of({vf_of("a", 64), vf_of("b", 32)}));
    ASSERT_TRUE(plan) << plan.error().cause;
    const auto room = nlohmann::json::parse(encode_change_plan(*plan)).at("gpus").at(0);
    EXPECT_EQ(room, nlohmann::json({{"gpu", "gpu0"},
                                    {"vram_bytes", 256 * kMiB},
                                    {"pf_vram_bytes", 16 * kMiB},
                                    {"planned_vram_bytes", 96 * kMiB},
                                    {"compute_units", 8},
                                    {"doorbell_pages", 512}}));
    const auto refused =
        plan_of(gpu, desired_of({vf_of("a", 128), vf_of("b", 128), vf_of("c", 16)}));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("256 MiB there for VFs (the PF keeps 16 MiB), "
                                                 "short by 16 MiB; leave out 'c' (16 MiB)"));
}

TEST(ChangePlan, JsonSaysWhatChangesAndNothingElse) {
    const auto plan = plan_of(gpu_with({vf_of("a", 64)}), desired_of({vf_of("a", 128, 300)}));
    ASSERT_TRUE(plan);
    const auto json = nlohmann::json::parse(encode_change_plan(*plan));
    EXPECT_EQ(json.at("schema"), "vgpu-plan-1");
    EXPECT_EQ(json.at("disruption"), "vf-restart");
    ASSERT_EQ(json.at("steps").size(), 2u);
    EXPECT_EQ(json.at("steps").at(0).at("from"), nlohmann::json({{"weight", 100}}));
    EXPECT_EQ(json.at("steps").at(0).at("to"), nlohmann::json({{"weight", 300}}));
    EXPECT_EQ(json.at("steps").at(1).at("to"), nlohmann::json({{"vram_bytes", 128 * kMiB}}));
    EXPECT_EQ(json.at("steps").at(1).at("target"), "gpu0/vf1");
}

// --- any state and any wish

class RandomWorld {
public:
    explicit RandomWorld(std::uint32_t seed) : random_(seed) {}

    std::vector<GpuInventory> gpus() {
        std::vector<GpuInventory> all{empty_gpu("gpu0"), empty_gpu("gpu1")};
        for (GpuInventory& gpu : all) {
            for (const VfSpec& vf : vfs_for(gpu)) {
                std::uint32_t number = 1 + below(gpu.total_vfs);
                while (std::any_of(gpu.vfs.begin(), gpu.vfs.end(),
                                   [&](const InventoryVf& other) { return other.vf == number; }))
                    number = number % gpu.total_vfs + 1;
                perform({.action = Action::Create, .gpu = gpu.id, .vf = number, .to = vf}, gpu);
            }
            used_.clear();
        }
        drop_doubles(all);
        return all;
    }
    std::vector<DesiredGpu> wanted() {
        std::vector<DesiredGpu> all;
        for (const char* id : {"gpu0", "gpu1"}) {
            DesiredGpu one = desired_of(vfs_for(empty_gpu(id)), id);
            for (DesiredVf& vf : one.vfs)
                if (below(6) == 0) vf.was = std::exchange(vf.spec.name, vf.spec.name + "x");
            if (below(3) == 0) one.scheduler.max_gap_ms = 60 + below(40);
            all.push_back(std::move(one));
        }
        return all;
    }

private:
    std::uint32_t below(std::uint32_t limit) {
        return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
    }
    /// At most what fits; names from a small set, so that they often meet.
    std::vector<VfSpec> vfs_for(const GpuInventory& gpu) {
        std::vector<VfSpec> vfs;
        std::uint64_t left = gpu.vram_bytes;
        for (std::uint32_t i = below(gpu.total_vfs + 1); i > 0; --i) {
            VfSpec vf =
                vf_of(fmt::format("vf{}", below(12)), 16 * (1 + below(8)), 100 * (1 + below(3)));
            if (below(4) == 0) vf.resources.cu_mask = 1 + below(254);
            if (below(4) == 0) vf.resources.security.guard_limits[0] = 1 + below(4);
            if (vf.resources.vram_bytes > left || !used_.insert(vf.name).second) continue;
            left -= vf.resources.vram_bytes;
            vfs.push_back(vf);
        }
        return vfs;
    }
    /// Names are unique over all GPUs.
    static void drop_doubles(std::vector<GpuInventory>& gpus) {
        for (const InventoryVf& vf : gpus.at(0).vfs)
            std::erase_if(gpus.at(1).vfs, [&](const InventoryVf& other) {
                return other.spec.name == vf.spec.name;
            });
    }

    std::mt19937 random_;
    std::set<std::string> used_;
};

std::uint64_t vram_of(const GpuInventory& gpu) {
    std::uint64_t sum = 0;
    for (const InventoryVf& vf : gpu.vfs) sum += vf.spec.resources.vram_bytes;
    return sum;
}

/// What must hold at every moment.
void expect_possible(const std::vector<GpuInventory>& gpus) {
    std::set<std::string> names;
    for (const GpuInventory& gpu : gpus) {
        EXPECT_LE(vram_of(gpu), gpu.vram_bytes);
        EXPECT_LE(gpu.vfs.size(), gpu.total_vfs);
        for (const InventoryVf& vf : gpu.vfs) EXPECT_TRUE(names.insert(vf.spec.name).second);
    }
}

std::map<std::string, VfSpec> by_name(const GpuInventory& gpu) {
    std::map<std::string, VfSpec> all;
    for (const InventoryVf& vf : gpu.vfs) all[vf.spec.name] = vf.spec;
    return all;
}

GpuInventory& find(std::vector<GpuInventory>& gpus, const std::string& id) {
    return *std::find_if(gpus.begin(), gpus.end(),
                         [&id](const GpuInventory& gpu) { return gpu.id == id; });
}

/// Performs the plan; every step may change its own VF only.
std::vector<GpuInventory> after(std::vector<GpuInventory> gpus, const ChangePlan& plan) {
    for (const Step& step : plan.steps) {
        const std::vector<GpuInventory> before = gpus;
        perform(step, find(gpus, step.gpu));
        // names may only meet between the renames of one GPU, which are made together
        if (step.action != Action::Rename) expect_possible(gpus);
        for (const GpuInventory& gpu : before)
            for (const InventoryVf& vf : gpu.vfs) {
                if (gpu.id == step.gpu && vf.vf == step.vf) continue;
                const auto& now = find(gpus, gpu.id).vfs;
                EXPECT_NE(std::find(now.begin(), now.end(), vf), now.end())
                    << name_of(step.action) << " " << target_of(step) << " touched " << vf.vf;
            }
    }
    return gpus;
}

TEST(ChangePlanProperty, EveryPlanLeadsToWhatIsWantedAndTouchesNothingElse) {
    int made = 0;
    for (std::uint32_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        RandomWorld world(seed);
        const std::vector<GpuInventory> gpus = world.gpus();
        const std::vector<DesiredGpu> wanted = world.wanted();
        const auto plan = make_change_plan(wanted, gpus, {.gpus = {"gpu0", "gpu1"}, .names = {}});
        if (!plan) {
            EXPECT_EQ(plan.error().id, ErrorId::NoSchedule) << plan.error().cause;
            continue;
        }
        ++made;
        std::vector<GpuInventory> reached = after(gpus, *plan);
        for (const DesiredGpu& one : wanted) {
            const auto vfs = by_name(find(reached, one.gpu));
            ASSERT_EQ(vfs.size(), one.vfs.size());
            for (const DesiredVf& vf : one.vfs) {
                ASSERT_TRUE(vfs.contains(vf.spec.name));
                const VfSpec& has = vfs.at(vf.spec.name);
                EXPECT_EQ(has.resources, normalised(vf.spec.resources, gpus.front()));
                EXPECT_EQ(has.weight, vf.spec.weight);
            }
        }
        EXPECT_TRUE(make_change_plan(wanted, reached, {.gpus = {}, .names = {}})->is_empty());
        std::vector<GpuInventory> back = reached;
        for (auto step = plan->steps.rbegin(); step != plan->steps.rend(); ++step)
            perform(inverse_of(*step), find(back, step->gpu));
        EXPECT_EQ(by_name(back.at(0)), by_name(gpus.at(0)));
        EXPECT_EQ(by_name(back.at(1)), by_name(gpus.at(1)));
    }
    EXPECT_GE(made, 300) << "most of the random wishes can be met";
}

TEST(ChangePlanProperty, WhatIsExportedWantsNoChange) {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const std::vector<GpuInventory> gpus = RandomWorld(seed).gpus();
        const std::string text = encode_configuration(current_configuration(gpus, "now"));
        const auto read = parse_configuration(text);
        ASSERT_TRUE(read) << read.error().cause << text;
        const auto wanted = desired_gpus(*read, "", std::vector<std::string>{"gpu0", "gpu1"});
        ASSERT_TRUE(wanted) << wanted.error().cause;
        const auto plan = make_change_plan(*wanted, gpus, {.gpus = {"gpu0", "gpu1"}, .names = {}});
        ASSERT_TRUE(plan) << plan.error().cause;
        EXPECT_TRUE(plan->is_empty()) << text << encode_change_plan(*plan);
    }
}

}  // namespace
}  // namespace vgpu::daemon
