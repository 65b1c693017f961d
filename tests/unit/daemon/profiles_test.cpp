// SPDX-License-Identifier: MIT
//
// The configurations that vgpud writes: exports and fair splits.
#include "daemon/service/config/profiles.h"

#include "daemon/service/config/capacity.h"
#include "daemon/service/config/change_plan.h"
#include "tests/unit/daemon/core_abilities.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <bit>
#include <nlohmann/json.hpp>
#include <random>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kMiB = 1u << 20;

GpuInventory gpu_of(const std::string& id, std::uint64_t vram_mib, std::uint32_t total_vfs = 16) {
    return {.id = id,
            .vram_bytes = vram_mib * kMiB,
            .abilities = testing::core_abilities(256 * kMiB),
            .total_vfs = total_vfs};
}

void add_vf(GpuInventory& gpu, const std::string& name, std::uint64_t mib,
            const std::string& profile = "", std::uint32_t weight = 100) {
    gpu.vfs.push_back({.vf = static_cast<std::uint32_t>(gpu.vfs.size() + 1),
                       .spec = {.name = name,
                                .resources = {.vram_bytes = mib * kMiB},
                                .weight = weight,
                                .profile = profile}});
}

std::vector<std::string> names_of(const Configuration& configuration) {
    std::vector<std::string> names;
    for (const auto& [name, profile] : configuration.profiles) names.push_back(name);
    return names;
}

TEST(Profiles, ExportKeepsTheOperatorsNamesAndGroupsNumberedVfs) {
    GpuInventory gpu = gpu_of("gpu0", 2032);
    add_vf(gpu, "web-1", 64, "small");
    add_vf(gpu, "web-2", 64, "small");
    add_vf(gpu, "web-4", 64, "small");
    add_vf(gpu, "train", 128, "large", 300);
    const Configuration written = current_configuration(std::vector{gpu}, "now");
    EXPECT_THAT(names_of(written), ElementsAre("large", "small"));
    const auto& sections = written.configs.at("now");
    ASSERT_EQ(sections.size(), 1u);
    EXPECT_EQ(sections.front().scheduler.quantum_us, scheduler::kDefaultQuantumUs);
    EXPECT_THAT(sections.front().vfs,
                ElementsAre(VfGroup{.profile = "small", .count = 2, .name = "web-{n}"},
                            VfGroup{.profile = "small", .name = "web-4"},
                            VfGroup{.profile = "large", .name = "train"}));
}

TEST(Profiles, ExportDescribesVfsOfNoProfileAndThoseThatLeftTheirs) {
    GpuInventory gpu = gpu_of("gpu0", 2032);
    add_vf(gpu, "a", 64);
    add_vf(gpu, "b", 64, "", 300);
    add_vf(gpu, "c", 64, "small");
    add_vf(gpu, "d", 64, "small", 7);
    add_vf(gpu, "e", 64);
    const Configuration written = current_configuration(std::vector{gpu}, "now");
    EXPECT_THAT(names_of(written), ElementsAre("64MiB", "64MiB-w300", "small", "small-2"));
    EXPECT_EQ(written.configs.at("now").front().vfs.at(4).profile, "64MiB");
}

TEST(Profiles, ExportCutsALongNameThatNeedsANumber) {
    const std::string longest(kMaxLabelBytes, 'p');
    GpuInventory gpu = gpu_of("gpu0", 2032);
    add_vf(gpu, "a", 64, longest);
    add_vf(gpu, "b", 64, longest, 50);
    add_vf(gpu, "c", 64, longest, 25);
    const Configuration written = current_configuration(std::vector{gpu}, "now");
    EXPECT_EQ(written.profiles.size(), 3u);
    EXPECT_EQ(*parse_configuration(encode_configuration(written)), written);
}

/// A VF as an operator could have made it by hand.
VfSpec random_vf(std::mt19937& random, const std::string& name) {
    const auto below = [&random](std::uint32_t max) {
        return static_cast<std::uint32_t>(random() % max);
    };
    const auto one_in_three = [&below](auto value, auto otherwise) {
        return below(3) == 0 ? value : otherwise;
    };
    VfSpec vf{.name = name,
              .resources = {.vram_bytes = (1 + below(16)) * 16 * kMiB,
                            .cu_mask = one_in_three(1 + below(254), 0u),
                            .doorbell_pages = one_in_three(1 + below(511), 0u)},
              .weight = 500 + below(500),
              .quantum_us = one_in_three(1000 + below(9000), 0u),
              .profile = one_in_three("p" + std::to_string(below(3)), std::string())};
    vf.resources.security.guard_limits[below(4)] = one_in_three(1 + below(kMaxGuardLimit - 1), 0u);
    vf.qos.max_pct = one_in_three(10.0 + 0.5 * below(180), 100.0);
    vf.assignment_policy.scrubs_on_release = one_in_three(true, false);
    return vf;
}

TEST(Profiles, WhatIsExportedIsTakenAndHolds) {
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
        std::vector<GpuInventory> gpus{gpu_of("gpu0", 4080), gpu_of("gpu-1", 4080)};
        for (GpuInventory& gpu : gpus)
            for (std::uint32_t vf = 1; vf <= random() % 9; ++vf)
                gpu.vfs.push_back(
                    {.vf = vf,
                     .spec =
                         random_vf(random, fmt::format("{}-{}", random() % 2 == 0 ? "web" : gpu.id,
                                                       vf + (gpu.id == "gpu0" ? 0 : 20)))});
        const std::string text = encode_configuration(current_configuration(gpus, "now"));
        const auto configuration = parse_configuration(text);
        ASSERT_TRUE(configuration) << configuration.error().cause << "\n" << text;
        const std::vector<std::string> ids{"gpu0", "gpu-1"};
        const auto wanted = desired_gpus(*configuration, "now", ids);
        ASSERT_TRUE(wanted) << wanted.error().cause << "\n" << text;
        const auto plan = make_change_plan(*wanted, gpus, {.gpus = ids, .names = {}});
        ASSERT_TRUE(plan) << plan.error().cause << "\n" << text;
        EXPECT_TRUE(plan->is_empty()) << encode_change_plan(*plan) << "\n" << text;
    }
}

TEST(Profiles, SplitsAreFairAndDependOnTheDeviceAlone) {
    GpuInventory gpu = gpu_of("gpu0", 2032);
    EXPECT_EQ(split_vram_bytes(gpu, 1, Rounding::PowerOfTwo), 256 * kMiB) << "a VF's BAR0";
    EXPECT_EQ(split_vram_bytes(gpu, 8, Rounding::PowerOfTwo), 128 * kMiB);
    EXPECT_EQ(split_vram_bytes(gpu, 16, Rounding::PowerOfTwo), 64 * kMiB);
    EXPECT_EQ(split_vram_bytes(gpu, 1, Rounding::Unit), 256 * kMiB);
    EXPECT_EQ(split_vram_bytes(gpu, 8, Rounding::Unit), 240 * kMiB);
    EXPECT_EQ(split_vram_bytes(gpu, 16, Rounding::Unit), 112 * kMiB);
    const Configuration empty = automatic_configuration(std::vector{gpu});
    add_vf(gpu, "a", 256);
    EXPECT_EQ(automatic_configuration(std::vector{gpu}), empty);
    EXPECT_EQ(empty.configs.size(), 10u);
    EXPECT_EQ(empty.configs.at("auto-4").front(),
              (GpuSection{.gpu = "gpu0",
                          .vfs = {{.profile = "gpu0-auto-4", .count = 4, .name = "gpu0-{n}"}}}));
}

TEST(Profiles, AutomaticSizesArePowersOfTwoAndLeaveThePfItsReserve) {
    for (const std::uint64_t vram_mib : {1008u, 2032u, 4080u, 16'368u}) {
        GpuInventory gpu = gpu_of("gpu0", vram_mib);
        gpu.pf_vram_bytes = 16 * kMiB;
        const Configuration splits = automatic_configuration(std::vector{gpu});
        for (const std::uint32_t vfs : kSplits) {
            const VfSpec& fair = splits.profiles.at("gpu0-auto-" + std::to_string(vfs));
            const VfSpec& even = splits.profiles.at("gpu0-even-" + std::to_string(vfs));
            EXPECT_TRUE(std::has_single_bit(fair.resources.vram_bytes))
                << fair.resources.vram_bytes;
            EXPECT_EQ(even.resources.vram_bytes % gpu.abilities[Change::VramBytes].unit, 0u);
            EXPECT_LE(fair.resources.vram_bytes, even.resources.vram_bytes);
            EXPECT_LE(vfs * even.resources.vram_bytes, gpu.vram_bytes)
                << "without what the PF keeps";
        }
    }
}

TEST(Profiles, AutomaticDocumentsStateComputeUnitsAndDoorbells) {
    const std::vector<GpuInventory> gpus{gpu_of("gpu0", 2032)};
    const Configuration splits = automatic_configuration(gpus);
    const std::string document = encode_configuration(splits);
    const auto json = nlohmann::json::parse(document);
    const auto& resources = json.at("profiles").at("gpu0-auto-8").at("resources");
    EXPECT_EQ(resources.at("vram"), "128MiB");
    EXPECT_EQ(resources.at("compute_units"), 8);
    EXPECT_EQ(resources.at("doorbell_pages"), 512);
    EXPECT_EQ(*parse_configuration(document), splits);
    EXPECT_EQ(normalised(splits.profiles.at("gpu0-auto-8").resources, gpus.front()),
              (VfResources{.vram_bytes = 128 * kMiB}))
        << "named or not, all is all";
}

TEST(Profiles, ASplitThatAGpuCannotHaveIsLeftOut) {
    const std::vector<GpuInventory> gpus{gpu_of("small", 48, 4), gpu_of("large", 2032)};
    const Configuration splits = automatic_configuration(gpus);
    EXPECT_EQ(splits.configs.at("auto-2").size(), 2u);
    EXPECT_EQ(splits.configs.at("auto-4").size(), 1u) << "48 MiB have only three units";
    EXPECT_EQ(splits.configs.at("even-4").size(), 1u);
    EXPECT_EQ(splits.configs.at("auto-16").front().gpu, "large");
}

}  // namespace
}  // namespace vgpu::daemon
