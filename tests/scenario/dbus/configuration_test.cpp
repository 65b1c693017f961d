// SPDX-License-Identifier: MIT
//
// Configurations on a real software GPU: plan, apply, assert and export with vgpuctl, and that
// creating, resizing and destroying a VF does not affect its neighbours.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/neighbours.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <fstream>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::HasSubstr;
using testing::Neighbours;

constexpr std::uint64_t kMiB = 1u << 20;

/// web and batch: 32 MiB and weight 100; train-n: `train_count` VFs of `train_mib` and weight 300.
std::string two_sizes(unsigned train_mib, unsigned train_count = 2) {
    return fmt::format(R"({{
        // two sizes
        "profiles": {{
            "small": {{"resources": {{"vram": "32MiB"}}}},
            "large": {{"resources": {{"vram": "{}MiB"}}, "scheduler": {{"weight": 300}}}}
        }},
        "configs": {{"day": [{{"gpu": "gpu0", "vfs": [
            {{"profile": "small", "name": "web"}},
            {{"profile": "small", "name": "batch"}},
            {{"profile": "large", "count": {}, "name": "train-{{n}}"}}]}}]}}
    }})",
                       train_mib, train_count);
}

/// As two_sizes(32), but train-1 has another size.
std::string other_size_of_one(unsigned mib) {
    return fmt::format(R"({{
        "profiles": {{
            "small": {{"resources": {{"vram": "32MiB"}}}},
            "large": {{"resources": {{"vram": "32MiB"}}, "scheduler": {{"weight": 300}}}},
            "other": {{"resources": {{"vram": "{}MiB"}}, "scheduler": {{"weight": 300}}}}
        }},
        "configs": {{"day": [{{"gpu": "gpu0", "vfs": [
            {{"profile": "small", "name": "web"}},
            {{"profile": "small", "name": "batch"}},
            {{"profile": "other", "name": "train-1"}},
            {{"profile": "large", "name": "train-2"}}]}}]}}
    }})",
                       mib);
}

struct OneGpu {
    test::GpuStack gpu{{.vfs = 4, .vram_mb = 512, .aperture_mb = 64}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            gpu.dir().file("uapi.sock"), gpu.dir().path().string());
    }
};

class ConfigurationOnTheBus : private OneGpu, public BusFixture {
protected:
    ConfigurationOnTheBus() : BusFixture(Setup{.gpus = config()}) { wait_for_gpu_state("ok"); }

    [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(directory.file(name)) << content;
        return directory.file(name);
    }
    [[nodiscard]] nlohmann::json vf(const std::string& name) const {
        return ctl_json({"show", name}).at("vf");
    }
    [[nodiscard]] Neighbours::List list() const {
        return [this] { return ctl_json({"list"}).at("vfs"); };
    }
    void apply(const std::string& path) const {
        const auto done = ctl({"apply", path, "--yes"});
        ASSERT_EQ(done.status, 0) << done.out;
        EXPECT_EQ(ctl({"assert", path}).status, 0);
    }
};

TEST_F(ConfigurationOnTheBus, TwoSizesAreAppliedAssertedExportedAndAppliedAgain) {
    const std::string small = file("small.json", two_sizes(32));
    const std::string large = file("large.json", two_sizes(64));
    EXPECT_EQ(ctl({"assert", small}).status, 1);
    apply(small);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 4u);
    EXPECT_EQ(vf("train-2").at("weight"), 300);
    const std::string exported = ctl({"export"}).out;
    const auto uuid = vf("train-1").at("uuid");

    const auto plan = ctl_json({"plan", large});
    EXPECT_EQ(plan.at("disruption"), "vf-restart");
    const auto refused = ctl({"apply", large});
    EXPECT_EQ(refused.status, 1) << "data would be lost without --yes";
    EXPECT_EQ(ctl({"export"}).out, exported);
    apply(large);
    EXPECT_EQ(vf("train-1").at("vram_bytes"), 64 * kMiB);
    EXPECT_EQ(vf("train-1").at("uuid"), uuid);

    EXPECT_EQ(ctl({"set", "web", "--weight", "7"}).status, 0);
    const auto differs = ctl({"assert", large});
    EXPECT_EQ(differs.status, 1);
    EXPECT_THAT(differs.out, HasSubstr("weight 7 -> 100"));

    apply(file("exported.json", exported));
    EXPECT_EQ(ctl({"export"}).out, exported);
}

TEST_F(ConfigurationOnTheBus, WhatDoesNotFitNamesTheResourceAndChangesNothing) {
    apply(file("small.json", two_sizes(32)));
    const std::string before = ctl({"export"}).out;
    const auto bar = ctl({"plan", file("bar.json", two_sizes(128))});
    EXPECT_EQ(bar.status, 6);
    EXPECT_THAT(bar.out, HasSubstr("VGPU-302: gpu0: VRAM: 128 MiB wanted for 'train-1' (profile "
                                   "'large'), but one VF can have at most 64 MiB (its BAR0), "
                                   "short by 64 MiB; 64 MiB would fit, or 2 VFs of 64 MiB each"));
    const auto numbers = ctl({"apply", file("numbers.json", two_sizes(32, 3)), "--yes"});
    EXPECT_EQ(numbers.status, 6);
    EXPECT_THAT(numbers.out, HasSubstr("VF numbers: 5 VFs wanted, 4 exist, short by 1"));
    EXPECT_EQ(ctl({"plan", file("wrong.json", "{}")}).status, 2);
    EXPECT_EQ(ctl({"plan", directory.file("small.json"), "--label", "dya"}).status, 3);
    EXPECT_EQ(ctl({"export"}).out, before);
}

TEST_F(ConfigurationOnTheBus, FairSplitsAreOffered) {
    const auto plan = ctl_json({"plan", "--auto", "4"});
    ASSERT_EQ(plan.at("steps").size(), 4u);
    EXPECT_EQ(plan.at("steps").front().at("to").at("vram_bytes"), 64 * kMiB);
    EXPECT_EQ(ctl({"apply", "--auto", "4"}).status, 0);
    EXPECT_EQ(ctl({"assert", "--auto", "4"}).status, 0);
    EXPECT_EQ(vf("gpu0-4").at("vram_bytes"), 64 * kMiB);
    EXPECT_THAT(ctl({"export", "--auto"}).out, HasSubstr("\"auto-2\""));
    const auto room = plan.at("gpus").front();
    EXPECT_GT(room.at("pf_vram_bytes"), 0);
    EXPECT_EQ(
        room.at("vram_bytes").get<std::uint64_t>() + room.at("pf_vram_bytes").get<std::uint64_t>(),
        512 * kMiB);
    EXPECT_EQ(ctl({"assert", "--auto", "4", "--even"}).status, 0) << "the BAR0 is the limit here";
    EXPECT_EQ(ctl({"plan", "--auto", "16"}).status, 3) << "this GPU has four VFs";
}

TEST_F(ConfigurationOnTheBus, NeighboursComputeExactlyAndKeepTheirSharesWhileAVfIsResized) {
    apply(file("small.json", two_sizes(32)));
    Neighbours neighbours(list(), {"web", "train-2"});
    for (const unsigned mib : {64u, 16u, 48u}) {
        apply(file("resized.json", other_size_of_one(mib)));
        EXPECT_EQ(vf("train-1").at("vram_bytes"), mib * kMiB);
        neighbours.compute();
    }
    EXPECT_NEAR(neighbours.share_of_first(), 0.25, 0.02);
    EXPECT_EQ(neighbours.stop(), "");
}

TEST_F(ConfigurationOnTheBus, NeighboursComputeExactlyAndKeepTheirSharesWhileAVfComesAndGoes) {
    const std::string without = file("without.json", two_sizes(32, 1));
    const std::string with = file("with.json", two_sizes(32, 2));
    apply(without);
    Neighbours neighbours(list(), {"web", "train-1"});
    EXPECT_GE(vf("web").at("guard_exclusive_events"), 1) << "its driver was loaded";
    for (int i = 0; i < 2; ++i) {
        apply(with);
        EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 4u);
        neighbours.compute();
        apply(without);
        EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 3u);
        neighbours.compute();
    }
    ASSERT_EQ(ctl({"create", "--name", "guest", "--vram", "48M", "--weight", "7"}).status, 0);
    neighbours.compute();
    ASSERT_EQ(ctl({"destroy", "guest"}).status, 0);
    neighbours.compute();
    EXPECT_NEAR(neighbours.share_of_first(), 0.25, 0.02);
    EXPECT_EQ(neighbours.stop(), "");
}

}  // namespace
}  // namespace vgpu::daemon
