// SPDX-License-Identifier: MIT
//
// Reads the data for the metrics from vgpud, for vgpu-exporter and `vgpuctl metrics`.
#pragma once

#include "daemon/exporter/bus_values.h"
#include "daemon/exporter/metrics.h"

namespace vgpu::exporter {

/// Reads all values for the metrics with four calls; each has the time limit of `bus`.
/// `destination`: org.vgpu1 or its owner. Throws sdbus::Error.
Readings read_vgpud(sdbus::IConnection& bus, const std::string& destination = kService);

/// The unique bus name of vgpud. A call to this name does not start vgpud. Throws sdbus::Error if
/// no vgpud runs.
std::string owner_of_service(sdbus::IConnection& bus);

}  // namespace vgpu::exporter
