// SPDX-License-Identifier: MIT
//
// Exports of a Recording: figures, a trace for Perfetto and chrome://tracing, a picture, and a
// scenario for `vgpuctl simulate`. The scenario has the VFs, contracts and work of the recording,
// so that people can simulate the same work under other contracts.
#pragma once

#include "daemon/simulator/milliseconds.h"
#include "daemon/simulator/recording.h"

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::simulator {

/// The figures of one VF.
struct RecordedVf {
    std::uint32_t weight = 0;  ///< in the last MembersSet; without one, at the last chunk's start
    std::uint64_t runs = 0;
    std::uint64_t wakes = 0;
    std::int64_t service_ns = 0;
    std::int64_t reserved_ns = 0;  ///< part of service_ns
    std::int64_t longest_run_ns = 0;
    std::int64_t worst_lag_ns = 0;  ///< largest |lag| at the end of any VF's run
};

/// The time from the first event (for a run: its start) to the last event, by vgpud's monotonic
/// clock. Both times are 0 if no event has a time.
struct Period {
    daemon::Nanoseconds begin{0};
    daemon::Nanoseconds end{0};
};

/// The figures of a recording.
struct RecordedFigures {
    Period period{};
    std::int64_t service_ns = 0;                ///< of all VFs
    std::uint64_t annotations = 0;              ///< number of annotations, such as resets and hangs
    std::map<std::uint32_t, RecordedVf> vfs{};  ///< by VF number
};

[[nodiscard]] Period period_of(const Recording& recording);
[[nodiscard]] RecordedFigures figures_of(const Recording& recording);

/// A trace in the Trace Event Format (JSON), with times in us since Period::begin.
[[nodiscard]] std::string chrome_trace(const Recording& recording);

/// An SVG picture over time, with one lane of runs for each VF.
[[nodiscard]] std::string svg_picture(const Recording& recording);

/// A scenario (schemas/vgpu-scenario.schema.json). A job that began before the recording, or ended
/// after it, is cut to its recorded part.
[[nodiscard]] std::string scenario_text(const Recording& recording);

/// The start of a run if the VF had work in all of the run (`ns` is service); otherwise a later
/// time.
[[nodiscard]] inline daemon::Nanoseconds begin_of(const daemon::trace::Ran& ran) {
    return ran.end - daemon::Nanoseconds{ran.ns};
}

}  // namespace vgpu::simulator
