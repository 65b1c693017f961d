// SPDX-License-Identifier: MIT
//
// Converts vgpud's answers on D-Bus to plain values (values.h). An answer is a dictionary of
// properties or, from ListVfs, a dictionary of columns: one array per property, with one value per
// VF. Used by vgpuctl and vgpu-exporter.
#pragma once

#include "daemon/exporter/values.h"

#include <sdbus-c++/sdbus-c++.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::exporter {

inline constexpr const char* kService = "org.vgpu1";  ///< bus name of vgpud
using Dict = std::map<std::string, sdbus::Variant>;

/// Converts a dictionary. If a property is itself a dictionary, its members get names with a dot,
/// such as "Agent.Connected". The property "Unknown" lists properties whose values vgpud does not
/// know; these and "Unknown" itself are left out.
Properties properties_of(const Dict& dict);
std::vector<Properties> properties_of(const std::vector<Dict>& dicts);
/// Converts the columns of ListVfs to rows, one for each VF. Leaves out columns of unknown types,
/// and the same values as properties_of().
std::vector<Properties> rows_of(const Dict& columns);

/// All known properties of an object, read with one call. Throws sdbus::Error.
Properties all_properties(sdbus::IConnection& bus, const std::string& destination,
                          const std::string& path, const std::string& interface);

/// Connects to a bus. `bus`: "system", "session" or a D-Bus address such as "unix:path=…". Throws
/// sdbus::Error.
std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus);

}  // namespace vgpu::exporter
