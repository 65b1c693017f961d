// SPDX-License-Identifier: MIT
//
// BusyTime: for how long each VF has used the GPU, from the perf PMU of xe. The PMU has two
// counters for each engine and each function (drivers/gpu/drm/xe/xe_pmu.c):
//
//   engine-active-ticks   ticks in which the function kept the engine busy
//   engine-total-ticks    all ticks x the function's quantum / the sum of all quanta
//
// So in an interval, a VF has used an engine for the part active x sum / (total x quantum) of the
// time. BusyTime adds up the larger part of the render and the compute engine of GT 0.
//
// While a counter is open, xe keeps the GPU awake. So vgpud counts only if the configuration wants
// it, and while VFs are enabled.
#pragma once

#include "daemon/backend/sriov/sysfs.h"
#include "daemon/backend/xe/admin.h"
#include "daemon/backend/xe/perf.h"
#include "daemon/ports/clock.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::daemon::xe {

class BusyTime {
public:
    /// `address`: PCI address of the PF.
    BusyTime(sriov::Sysfs& files, std::unique_ptr<Perf> perf, const Clock& clock,
             std::string address)
        : files_(files), perf_(std::move(perf)), clock_(clock), address_(std::move(address)) {}
    ~BusyTime() { close(); }
    BusyTime(const BusyTime&) = delete;
    BusyTime& operator=(const BusyTime&) = delete;

    /// Reads the counters. `timings`: the timings in force since the last call, by function; 0 is
    /// the PF. Opens counters for new VFs, and closes those of VFs that are gone.
    void update(const std::map<std::uint32_t, Timing>& timings);
    /// Closes all counters, and forgets the times.
    void close();
    /// Time since the VF was enabled, or since vgpud counts; none if the driver does not tell.
    [[nodiscard]] std::optional<Nanoseconds> of(std::uint32_t vf) const;
    /// Why the times are unknown, once for each reason; empty: they are known.
    std::string take_problem() { return std::exchange(problem_, {}); }

private:
    /// The config value of a counter is event | field << its shift for each field.
    struct Pmu {
        std::uint32_t type = 0;
        int cpu = 0;
        std::uint64_t active = 0, total = 0;  ///< the two events
        unsigned engine_class = 0, function = 0;
    };
    struct Engine {
        int active = -1, total = -1;  ///< descriptors
        std::uint64_t active_before = 0, total_before = 0;
    };
    struct Vf {
        std::vector<Engine> engines;
        Nanoseconds busy{};
        Nanoseconds read_at{};
    };

    Result<Pmu> find_pmu();
    Result<std::uint64_t> number_in(const std::string& file, std::string_view prefix);
    Result<Vf> open(std::uint32_t vf);
    Result<> read(Vf& vf, double ticks_per_total);
    void close(const Vf& vf);

    sriov::Sysfs& files_;
    const std::unique_ptr<Perf> perf_;
    const Clock& clock_;
    const std::string address_;
    std::optional<Pmu> pmu_{};
    std::map<std::uint32_t, Vf> vfs_;
    std::string problem_, last_problem_;
};

}  // namespace vgpu::daemon::xe
