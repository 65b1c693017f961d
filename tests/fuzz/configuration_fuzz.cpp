// SPDX-License-Identifier: MIT
//
// Fuzzes Manager.Plan, which any user may call. The input is a document, which is planned for two
// GPUs. For any input, a configuration that is read can be written and read again, after a plan the
// next plan is empty, and errors have short texts.
#include "daemon/service/config/change_plan.h"
#include "tests/unit/daemon/core_abilities.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace vgpu::daemon;

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::size_t kFewWords = 20'000;

void require(bool is_true) {
    if (!is_true) std::abort();
}

GpuInventory gpu_of(const std::string& id) {
    GpuInventory gpu{.id = id,
                     .vram_bytes = 1024 * kMiB,
                     .abilities = vgpu::daemon::testing::core_abilities(256 * kMiB),
                     .total_vfs = 16};
    gpu.vfs.push_back({.vf = 2,
                       .spec = {.name = id + "-a", .resources = {.vram_bytes = 64 * kMiB}},
                       .is_attached = true});
    gpu.vfs.push_back(
        {.vf = 5, .spec = {.name = id + "-b", .resources = {.vram_bytes = 256 * kMiB}}});
    return gpu;
}

void check_plan(const std::vector<DesiredGpu>& wanted, std::vector<GpuInventory> gpus) {
    const Surroundings around{.gpus = {"gpu0", "gpu1"}, .names = {}};
    const auto plan = make_change_plan(wanted, gpus, around);
    if (!plan) return require(plan.error().cause.size() < kFewWords);
    require(!encode_change_plan(*plan).empty());
    for (const Step& step : plan->steps)
        perform(step, *std::find_if(gpus.begin(), gpus.end(),
                                    [&](const GpuInventory& gpu) { return gpu.id == step.gpu; }));
    const auto again = make_change_plan(wanted, gpus, around);
    require(again && again->is_empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(data, data + size);
    const auto read = parse_configuration(text);
    if (!read) {
        require(read.error().cause.size() < kFewWords);
        return 0;
    }
    const auto again = parse_configuration(encode_configuration(*read));
    require(again && *again == *read);
    const std::vector<std::string> ids{"gpu0", "gpu1"};
    for (const auto& [label, sections] : read->configs)
        if (const auto wanted = desired_gpus(*read, label, ids))
            check_plan(*wanted, {gpu_of("gpu0"), gpu_of("gpu1")});
    return 0;
}
