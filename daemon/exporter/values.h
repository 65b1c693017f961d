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
/// A D-Bus value of one of a few types. Values of type u are converted to t, those of type o to s.
/// A value of any other type becomes the text "?".
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// Properties by name. If a property is a dictionary, each member is an entry: the member Connected
/// of Agent has the name "Agent.Connected".
using Properties = std::map<std::string, Value>;

}  // namespace vgpu::exporter
