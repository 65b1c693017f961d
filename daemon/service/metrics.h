// SPDX-License-Identifier: MIT
//
// Metrics of vgpud as OpenMetrics 1.0 text. metrics_text() is pure; the families are the rows of
// gpu_metrics.def and vf_metrics.def. Metrics collects from Manager and Agents and keeps the text
// for kFresh, so that whoever asks often costs little. It never waits for a PF core: counters are
// as last heard, at most a second old. Main loop only; called by the metrics socket and by
// Manager.GetMetrics.
#pragma once

#include "daemon/service/agents.h"
#include "daemon/service/event_log.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

inline constexpr std::string_view kMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MetricsInput {
    std::string version;
    bool is_read_only = false;
    std::uint64_t state_generation = 0;
    std::uint64_t events = 0;       ///< notices since the start
    std::vector<GpuSnapshot> gpus;  ///< with what the agents say
};

/// One document, "# EOF" at its end.
std::string metrics_text(const MetricsInput& input);

class Metrics {
public:
    static constexpr Nanoseconds kFresh = std::chrono::milliseconds(100);

    Metrics(Manager& manager, const Agents& agents, const EventLog& events, const Clock& clock,
            std::string version);

    /// Not older than kFresh.
    [[nodiscard]] const std::string& text();

private:
    [[nodiscard]] MetricsInput collect() const;

    Manager& manager_;
    const Agents& agents_;
    const EventLog& events_;
    const Clock& clock_;
    std::string version_;
    std::string text_;
    Nanoseconds made_at_{0};
};

}  // namespace vgpu::daemon
