// SPDX-License-Identifier: MIT
//
// Metrics of vgpud as text, in the format OpenMetrics 1.0 or in the older Prometheus format, which
// lacks units and the types info and stateset. Most metric families come from rows of
// {manager,gpu,vf}_metrics.def; each row names a D-Bus property. Used by vgpu-exporter and
// `vgpuctl metrics`. Pure functions.
#pragma once

#include "daemon/exporter/values.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::exporter {

enum class MetricsFormat { OpenMetrics, Prometheus };

[[nodiscard]] std::string_view media_type_of(MetricsFormat format);
/// The format for a request. `accept`: value of the header field Accept. Returns Prometheus if
/// `accept` names text/plain but not OpenMetrics, else OpenMetrics.
[[nodiscard]] MetricsFormat format_for(std::string_view accept);

/// The values from which one text of metrics is made.
struct Readings {
    std::string problem{};  ///< why vgpud does not answer; empty if it answers
    /// Properties of org.vgpu1.Manager, and "Events": the number of events since vgpud started.
    Properties manager{};
    /// Known properties of each GPU, and "Target": its id, such as "gpu0".
    std::vector<Properties> gpus{};
    /// Known properties of each VF, and "Target": its path, such as "gpu0/vf1".
    std::vector<Properties> vfs{};
};

/// The text of all metrics. Unknown values have no samples. If vgpud does not answer, vgpu_up is
/// the only family.
std::string metrics_text(const Readings& readings, MetricsFormat format);

/// The properties that metrics_text() needs, as a value for the option `properties` of ListGpus.
std::string properties_of_gpus();
/// The properties that metrics_text() needs, as a value for the option `properties` of ListVfs.
std::string properties_of_vfs();

}  // namespace vgpu::exporter
