// SPDX-License-Identifier: MIT
//
// Configurations on a real software GPU: plan, apply, assert and export with vgpuctl, and what a
// resize of one VF means to its neighbours (nothing).
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/programs/program.h"
#include "tests/support/stack/gpu_stack.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <atomic>
#include <fstream>
#include <thread>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;

/// web: 1 VF of 32 MiB and weight 100; train: 2 VFs of `train_mib` and weight 300.
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

/// A booted driver on a VF with one process and one queue.
struct Guest {
    explicit Guest(const std::string& socket) : client(socket) {
        client.device().trace().set_recording(false);
        client.boot();
        process = &client.create_process();
        queue = &process->create_queue();
    }
    test::VfClient client;
    test::Process* process = nullptr;
    test::AqlQueue* queue = nullptr;
};

class ConfigurationOnTheBus : private OneGpu, public BusFixture {
protected:
    ConfigurationOnTheBus() : BusFixture(Setup{.gpus = config()}) { wait_for_gpu_state("ok"); }

    [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(directory.file(name)) << content;
        return directory.file(name);
    }
    [[nodiscard]] std::string socket_of(const std::string& name) const {
        return ctl_json({"show", name}).at("vf").at("socket");
    }
    [[nodiscard]] double service_of(const std::string& name) const {
        return ctl_json({"show", name}).at("vf").at("service_ns");
    }
    [[nodiscard]] nlohmann::json vf(const std::string& name) const {
        return ctl_json({"show", name}).at("vf");
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
                                   "short by 64 MiB"));
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
    EXPECT_EQ(ctl({"plan", "--auto", "16"}).status, 3) << "this GPU has four VFs";
}

TEST_F(ConfigurationOnTheBus, ANeighboursResultsAreExactWhileAVfIsResized) {
    apply(file("small.json", two_sizes(32)));
    const auto before = vf("web");
    std::atomic<bool> is_over{false};
    std::atomic<int> rounds{0};
    std::string trouble;
    std::thread guest([&, socket = socket_of("web")] {
        try {
            Guest web(socket);
            while (!is_over && trouble.empty()) {
                trouble = test::run_programs(*web.process, *web.queue, test::Program::demo_names());
                ++rounds;
            }
        } catch (const test::VfError& error) {
            trouble = error.what();
        }
    });
    const auto wait_for_rounds = [&](int more) {
        const int wanted = rounds + more;
        test::wait_for("the neighbour to compute", test::milliseconds(60'000),
                       [&] { return rounds >= wanted || !trouble.empty(); });
    };
    wait_for_rounds(1);
    for (const unsigned mib : {64u, 32u, 48u}) {
        apply(file("resized.json", two_sizes(mib)));
        EXPECT_EQ(vf("train-1").at("vram_bytes"), mib * kMiB);
        wait_for_rounds(1);
    }
    is_over = true;
    guest.join();
    EXPECT_EQ(trouble, "");
    const auto after = vf("web");
    for (const char* same : {"generation", "uuid", "vram_bytes", "weight", "hangs", "faults"})
        EXPECT_EQ(after.at(same), before.at(same)) << same;
    EXPECT_GT(after.at("service_ns"), before.at("service_ns"));
}

/// Starts a kernel that never ends.
void run_for_ever(Guest& guest) {
    const auto kernel = guest.process->load(test::kernel_file("endless"), "endless");
    const auto progress = guest.process->allocate(4096);
    guest.queue->dispatch(kernel, {.grid = {256, 1, 1}, .group = {64, 1, 1}},
                          test::args(progress.address));
}

TEST_F(ConfigurationOnTheBus, NeighboursKeepTheirSharesWhileAVfIsResized) {
    apply(file("small.json", two_sizes(32)));
    Guest web(socket_of("web")), train(socket_of("train-2"));
    run_for_ever(web);
    run_for_ever(train);
    const auto settle = [&](double more_ns) {
        const double wanted = service_of("web") + service_of("train-2") + more_ns;
        test::wait_for("service", test::milliseconds(60'000),
                       [&] { return service_of("web") + service_of("train-2") >= wanted; });
    };
    settle(0.3e9);
    const double web_before = service_of("web"), train_before = service_of("train-2");
    const auto flrs_before = vf("train-2").at("flrs");
    for (const unsigned mib : {64u, 16u, 48u}) {
        apply(file("resized.json", other_size_of_one(mib)));
        settle(0.3e9);
    }
    const double web_got = service_of("web") - web_before;
    const double train_got = service_of("train-2") - train_before;
    EXPECT_NEAR(web_got / (web_got + train_got), 0.25, 0.02);
    EXPECT_EQ(vf("train-2").at("hangs"), 0);
    EXPECT_EQ(vf("train-2").at("flrs"), flrs_before);
}

}  // namespace
}  // namespace vgpu::daemon
