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
/// The format for a request with the header field `accept`: Prometheus if the field names
/// text/plain and not OpenMetrics, else OpenMetrics.
[[nodiscard]] MetricsFormat format_for(std::string_view accept);

struct Readings {
    std::string problem{};  ///< why vgpud does not answer; empty if it answers
    /// Properties of org.vgpu1.Manager, and "Events", the number of events that vgpud has reported.
    Properties manager{};
    /// Known properties of each GPU, and "Target".
    std::vector<Properties> gpus{};
    /// Known properties of each VF, and "Target".
    std::vector<Properties> vfs{};
};

/// The text of all metrics. Unknown values have no samples. If vgpud does not answer, vgpu_up is
/// the only family.
std::string metrics_text(const Readings& readings, MetricsFormat format);

/// The properties that the text needs, as a value for the option `properties` of ListGpus.
std::string properties_of_gpus();
/// The properties that the text needs, as a value for the option `properties` of ListVfs.
std::string properties_of_vfs();

}  // namespace vgpu::exporter
