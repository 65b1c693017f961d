// SPDX-License-Identifier: MIT
//
// Metrics of vgpud as OpenMetrics 1.0 text, or in the older format of Prometheus, which has neither
// units nor info and states. Most families are rows of {manager,gpu,vf}_metrics.def, one D-Bus
// property each. Used by vgpu-exporter and `vgpuctl metrics`. Pure.
#pragma once

#include "daemon/exporter/values.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::exporter {

enum class MetricsFormat { OpenMetrics, Prometheus };

[[nodiscard]] std::string_view media_type_of(MetricsFormat format);
/// `accept`: header of a request. Prometheus if it names text/plain and not OpenMetrics.
[[nodiscard]] MetricsFormat format_for(std::string_view accept);

struct Readings {
    std::string problem{};  ///< why vgpud does not answer; empty: it does
    Properties manager{};   ///< of org.vgpu1.Manager, and "Events": how many vgpud has reported
    std::vector<Properties> gpus{}, vfs{};  ///< with "Target"; without unknown properties
};

/// Unknown values give no samples. Without vgpud the only family is vgpu_up.
std::string metrics_text(const Readings& readings, MetricsFormat format);

/// Option `properties` of vgpud's lists: all that the text needs.
std::string properties_of_gpus();
std::string properties_of_vfs();

}  // namespace vgpu::exporter
