// SPDX-License-Identifier: MIT
//
// vgpud's D-Bus properties as plain values, for vgpuctl and vgpu-exporter. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::exporter {

using Words = std::vector<std::string>;
/// A D-Bus value without its width: u becomes t, o becomes s; unknown types become "?".
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// Properties by name. Members of dictionaries are flattened: "Agent.Connected".
using Properties = std::map<std::string, Value>;

/// Removes properties that vgpud reports as zero because they are unknown: the device before the PF
/// core is reached, the run table before one exists, and pids of programs that vgpud does not run.
inline Properties known_of(Properties gpu) {
    const auto is_zero = [&gpu](const char* name) {
        const auto at = gpu.find(name);
        return at != gpu.end() && at->second == Value{std::uint64_t{0}};
    };
    const auto forget = [&gpu](std::initializer_list<const char*> names) {
        for (const char* name : names) gpu.erase(name);
    };
    for (const char* pid : {"SoftgpuPid", "PfPid"})
        if (is_zero(pid)) forget({pid});
    const bool is_unknown = is_zero("TotalVfs");
    if (is_unknown || is_zero("TableEntries"))
        forget({"TableCycleUs", "TableExact", "TableWorstGapUs"});
    if (is_unknown)
        forget({"Platform", "TotalVfs", "VramBytes", "VramFreeBytes", "VramUnitBytes",
                "VramApertureBytes", "CuCount", "DoorbellPages", "TableGeneration", "TableEntries",
                "Switches", "SwitchP50Ns", "SwitchP99Ns", "SwitchMaxNs", "EventsLost",
                "DeviceResets"});
    return gpu;
}

}  // namespace vgpu::exporter
