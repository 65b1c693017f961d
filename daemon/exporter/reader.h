// SPDX-License-Identifier: MIT
//
// Reads the data for the metrics from vgpud, for vgpu-exporter and `vgpuctl metrics`.
#pragma once

#include "daemon/exporter/bus_values.h"
#include "daemon/exporter/metrics.h"

namespace vgpu::exporter {

/// Reads all values for the metrics with four calls; each call has the time limit of `bus`.
/// `destination`: org.vgpu1, or the result of owner_of_service(). Throws sdbus::Error.
Readings read_vgpud(sdbus::IConnection& bus, const std::string& destination = kService);

/// The unique bus name of vgpud. A call to a unique name never makes the bus start a vgpud. Throws
/// sdbus::Error if no vgpud runs.
std::string owner_of_service(sdbus::IConnection& bus);

}  // namespace vgpu::exporter
