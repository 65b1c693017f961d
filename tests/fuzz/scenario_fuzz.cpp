// SPDX-License-Identifier: MIT
//
// Fuzzes scenario files of vgpuctl simulate. For any file, an error has a short text without
// commands for a terminal. The simulator can run a scenario that is read; small scenarios are run
// for 2 ms.
#include "daemon/simulator/scenario.h"

#include "daemon/simulator/comparison.h"
#include "tests/support/hostile_recording.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace vgpu::simulator;

constexpr std::size_t kFewWords = 20'000;
constexpr std::size_t kFewVfs = 4;
constexpr std::size_t kFewChanges = 8;
constexpr std::int64_t kMomentNs = 2'000'000;

void require(bool is_true) {
    if (!is_true) std::abort();
}

/// True if the scenario is cheap enough to be run.
bool is_small(const Simulation& setup) {
    return setup.vfs.size() <= kFewVfs && setup.changes.size() <= kFewChanges;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto scenario = parse_scenario(std::string(data, data + size));
    if (!scenario) {
        require(!scenario.error().empty() && scenario.error().size() < kFewWords);
        require(vgpu::test::is_harmless(scenario.error()));
        return 0;
    }
    require(!scenario->setup.vfs.empty() && scenario->setup.duration_ns > 0);
    if (!is_small(scenario->setup)) return 0;
    scenario->setup.duration_ns = std::min(scenario->setup.duration_ns, kMomentNs);
    scenario->policies = {"gim", "gvt-g"};
    for (const Row& row : compare(*scenario)) require(row.useful_pct <= 100.001);
    return 0;
}
