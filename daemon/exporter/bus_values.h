// SPDX-License-Identifier: MIT
//
// Converts vgpud's answers on D-Bus (properties, and rows in columns) to plain values (values.h).
// Used by vgpuctl and vgpu-exporter.
#pragma once

#include "daemon/exporter/values.h"

#include <sdbus-c++/sdbus-c++.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::exporter {

inline constexpr const char* kService = "org.vgpu1";
using Dict = std::map<std::string, sdbus::Variant>;

/// Converts a dictionary. Members of a dictionary inside a property get names with a dot. Leaves
/// out "Unknown" and the properties that it names, because they have no known value.
Properties properties_of(const Dict& dict);
std::vector<Properties> properties_of(const std::vector<Dict>& dicts);
/// Converts the columns of ListVfs to rows. Omits columns of unknown types.
std::vector<Properties> rows_of(const Dict& columns);

/// All properties of an object, read with one call. Throws sdbus::Error.
Properties all_properties(sdbus::IConnection& bus, const std::string& destination,
                          const std::string& path, const std::string& interface);

/// `bus`: "system", "session" or an address: "unix:path=…". Throws sdbus::Error.
std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus);

}  // namespace vgpu::exporter
