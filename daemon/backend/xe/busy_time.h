// SPDX-License-Identifier: MIT
//
// BusyTime: measures for how long each VF keeps the GPU busy, with the perf PMU of xe. The PMU has
// two counters for each engine and each function (drivers/gpu/drm/xe/xe_pmu.c). q is the function's
// quantum, Σ q the sum of the quanta of all functions:
//
//   engine-active-ticks   ticks in which the function kept the engine busy
//   engine-total-ticks    all ticks of the interval · q / Σ q
//
// So the function keeps the engine busy for the part active · q / (total · Σ q) of an interval.
// BusyTime computes this part for the render and the compute engine of GT 0. The larger part, times
// the interval, is added to the busy time of the VF.
//
// While a counter is open, xe keeps the GPU awake. So vgpud counts only if the configuration
// requests it ("busy_time"), and only while VFs are enabled.
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
    /// the PF. Opens counters for new VFs, and closes the counters of VFs that are gone. Closes all
    /// counters if a quantum is unlimited, or if a counter cannot be opened or read
    /// (take_problem()).
    void update(const std::map<std::uint32_t, Timing>& timings);
    /// Closes all counters, and forgets the times.
    void close();
    /// The VF's busy time since its counters were opened; none if it is unknown.
    [[nodiscard]] std::optional<Nanoseconds> of(std::uint32_t vf) const;
    /// Why the busy times are unknown; empty if there is no new reason since the last call.
    std::string take_problem() { return std::exchange(problem_, {}); }

private:
    /// How to open a counter: perf_event_attr.config is
    /// event | class << engine_class | VF << function.
    struct Pmu {
        std::uint32_t type = 0;                   ///< perf_event_attr.type
        int cpu = 0;                              ///< the CPU that the PMU requires
        std::uint64_t active = 0, total = 0;      ///< the two events
        unsigned engine_class = 0, function = 0;  ///< lowest bits of the two fields
    };
    struct Engine {
        int active = -1, total = -1;                        ///< descriptors of the counters
        std::uint64_t active_before = 0, total_before = 0;  ///< values at the last read
    };
    struct Vf {
        std::vector<Engine> engines;
        Nanoseconds busy{};     ///< busy time since the counters were opened
        Nanoseconds read_at{};  ///< time of the last read
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
