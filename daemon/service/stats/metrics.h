// SPDX-License-Identifier: MIT
//
// Metrics of vgpud as OpenMetrics 1.0 text, or in the older format of Prometheus, which has neither
// units nor info and states. metrics_text() is pure; the families are the rows of
// gpu_metrics.def and vf_metrics.def. Metrics collects from Manager, Agents and Assignments and
// keeps the text for kFresh, so that whoever asks often costs little. It never waits for a PF core:
// counters are as last heard, at most a second old. Main loop only; called by the metrics socket
// and by Manager.GetMetrics.
#pragma once

#include "daemon/service/agents/agents.h"
#include "daemon/service/owners/assignments.h"
#include "daemon/service/views/event_log.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

enum class MetricsFormat { OpenMetrics, Prometheus };

/// The media type of documents of that format.
[[nodiscard]] std::string_view media_type_of(MetricsFormat format);
/// What somebody gets who sends `accept`: OpenMetrics, but for those who ask for text/plain only.
[[nodiscard]] MetricsFormat format_for(std::string_view accept);

/// All that the text depends on: equal ones give the same text.
struct MetricsInput {
    std::string version;
    bool is_read_only = false;
    std::uint64_t state_generation = 0;
    std::uint64_t events = 0;       ///< notices since the start
    std::vector<GpuSnapshot> gpus;  ///< with what the agents say and how owners are called
};

/// One document; of OpenMetrics with "# EOF" at its end.
/// Families without a known value have no samples, never made-up ones.
std::string metrics_text(const MetricsInput& input, MetricsFormat format);

/// What it refers to outlives it (main.cpp).
class Metrics {
public:
    static constexpr Nanoseconds kFresh = std::chrono::milliseconds(100);

    Metrics(Manager& manager, const Agents& agents, const Assignments& assignments,
            const EventLog& events, const Clock& clock, std::string version);

    /// Not older than kFresh.
    /// Good until the next call.
    [[nodiscard]] const std::string& text(MetricsFormat format = MetricsFormat::OpenMetrics);

private:
    struct Kept {
        std::string text;
        Nanoseconds made_at{0};
    };

    [[nodiscard]] MetricsInput collect() const;

    Manager& manager_;
    const Agents& agents_;
    const Assignments& assignments_;
    const EventLog& events_;
    const Clock& clock_;
    std::string version_;
    std::map<MetricsFormat, Kept> kept_;
};

}  // namespace vgpu::daemon
