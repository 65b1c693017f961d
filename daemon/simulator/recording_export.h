// SPDX-License-Identifier: MIT
//
// Exports of a Recording: figures, a trace for Perfetto and chrome://tracing, a picture, and a
// scenario for `vgpuctl simulate`. The scenario has the VFs, contracts and work of the recording,
// so that people can change the contracts and simulate the same work.
#pragma once

#include "daemon/simulator/milliseconds.h"
#include "daemon/simulator/recording.h"

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::simulator {

struct RecordedVf {
    std::uint32_t weight = 0;  ///< last known weight
    std::uint64_t runs = 0;
    std::uint64_t wakes = 0;
    std::int64_t service_ns = 0;
    std::int64_t reserved_ns = 0;  ///< part of service_ns
    std::int64_t longest_run_ns = 0;
    std::int64_t worst_lag_ns = 0;  ///< absolute value
};

/// The time from the first event, or the begin of the first run, to the last event.
struct Period {
    daemon::Nanoseconds begin{0};
    daemon::Nanoseconds end{0};
};

struct RecordedFigures {
    Period period{};
    std::int64_t service_ns = 0;    ///< of all VFs
    std::uint64_t annotations = 0;  ///< number of annotations, such as resets and hangs
    std::map<std::uint32_t, RecordedVf> vfs{};
};

[[nodiscard]] Period period_of(const Recording& recording);
[[nodiscard]] RecordedFigures figures_of(const Recording& recording);

/// Trace Event Format, JSON; times in us since the recording began.
[[nodiscard]] std::string chrome_trace(const Recording& recording);

[[nodiscard]] std::string svg_picture(const Recording& recording);

/// A scenario (schemas/vgpu-scenario.schema.json). Of jobs that began before the recording or ended
/// after it, the scenario has only the recorded part.
[[nodiscard]] std::string scenario_text(const Recording& recording);

[[nodiscard]] inline daemon::Nanoseconds begin_of(const daemon::trace::Ran& ran) {
    return ran.end - daemon::Nanoseconds{ran.ns};
}

}  // namespace vgpu::simulator
