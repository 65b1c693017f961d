// SPDX-License-Identifier: MIT
//
// Runs of what is shipped, for the tests of the product in virtual time: scenarios given as JSON,
// and what is asked of their figures. There are more of them with VGPU_SCHEDULER_FULL set in the
// environment.
#pragma once

#include "daemon/simulator/gps_fluid.h"
#include "daemon/simulator/milliseconds.h"
#include "daemon/simulator/product.h"
#include "daemon/simulator/scenario.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace vgpu::simulator {

inline bool is_full() {
    return std::getenv("VGPU_SCHEDULER_FULL") != nullptr;
}
inline std::uint64_t seeds() {
    return is_full() ? 20 : 3;
}

/// Three seconds of these VFs.
inline Simulation scenario(const std::string& vfs, const std::string& more = "") {
    const auto parsed =
        parse_scenario(fmt::format(R"({{"duration_ms": 3000, "vfs": [{}]{}}})", vfs, more));
    EXPECT_TRUE(parsed) << parsed.error();
    return parsed ? parsed->setup : Simulation{};
}

inline Figures figures_of(const Simulation& setup, Observer* observer = nullptr,
                          const VgpudModel& vgpud = {}) {
    auto figures = run_product(setup, observer, vgpud);
    EXPECT_TRUE(figures) << figures.error().cause;
    return figures ? *figures : Figures{.vfs = std::vector<VfFigures>(setup.vfs.size() + 1)};
}

inline double share(const Figures& figures, std::uint32_t vf) {
    return static_cast<double>(figures.vfs[vf].service_ns) /
           static_cast<double>(figures.service_ns);
}

inline double worst_lag_ms(const GpsFluid& oracle) {
    return static_cast<double>(oracle.worst_lag_ns()) / 1e6;
}

}  // namespace vgpu::simulator
