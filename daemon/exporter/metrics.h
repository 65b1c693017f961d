// SPDX-License-Identifier: MIT
//
// Metrics of vgpud as OpenMetrics 1.0 text, or in the older Prometheus format, which lacks units,
// info and states. Most families are rows of {manager,gpu,vf}_metrics.def, with one D-Bus property
// each. Used by vgpu-exporter and `vgpuctl metrics`. Pure functions.
#pragma once

#include "daemon/exporter/values.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::exporter {

enum class MetricsFormat { OpenMetrics, Prometheus };

[[nodiscard]] std::string_view media_type_of(MetricsFormat format);
/// The format for a request with this header `accept`. Prometheus if it names text/plain and not
/// OpenMetrics.
[[nodiscard]] MetricsFormat format_for(std::string_view accept);

struct Readings {
    std::string problem{};  ///< why vgpud does not answer; empty if it answers
    Properties manager{};   ///< of org.vgpu1.Manager, and "Events": number of events that vgpud has
                            ///< reported
    std::vector<Properties> gpus{}, vfs{};  ///< with "Target"; without unknown properties
};

/// The text. Unknown values have no samples. If vgpud does not answer, vgpu_up is the only family.
std::string metrics_text(const Readings& readings, MetricsFormat format);

/// The option `properties` of vgpud's lists: all properties that the text needs.
std::string properties_of_gpus();
std::string properties_of_vfs();

}  // namespace vgpu::exporter
