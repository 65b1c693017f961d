// SPDX-License-Identifier: MIT
//
// vgpud's D-Bus properties as plain values, for vgpuctl and vgpu-exporter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::exporter {

using Words = std::vector<std::string>;
/// A D-Bus value without its width: type u becomes t, type o becomes s; a value of an unknown type
/// becomes the text "?".
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// Properties by name. The member Connected of the dictionary Agent has the name "Agent.Connected".
using Properties = std::map<std::string, Value>;

}  // namespace vgpu::exporter
