// SPDX-License-Identifier: MIT
//
// The checks of `vgpuctl doctor`. They turn facts into findings with level, reason and fix, in a
// fixed order. Pure functions. docs/vgpuctl.md documents the ids of findings, which are stable.
#pragma once

#include "cli/host_facts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// The severity of a finding, in ascending order. Only a Problem makes doctor fail. A Note is not a
/// fault.
enum class Level { Ok, Note, Warning, Problem };

/// The name of a level, also in the JSON output.
std::string_view name_of(Level level);

/// One finding. Several GPUs, VFs or files may have findings with the same id.
struct Finding {
    std::string id;  ///< "pci-acs"
    Level level = Level::Ok;
    std::string what;
    std::string why{};  ///< why `what` matters; empty if `level` is Ok
    std::string fix{};  ///< empty if there is nothing to do

    bool operator==(const Finding&) const = default;
};

/// Makes all checks. If the PCI bus, the kernel configuration or QEMU's version is unreadable, the
/// finding is a Note. Checks versions, state, GPUs and VFs only if vgpud answered.
[[nodiscard]] std::vector<Finding> diagnose(const HostFacts& facts);

/// The worst level; Ok if there are no findings.
[[nodiscard]] Level worst_of(const std::vector<Finding>& findings);

/// The findings as text, at most 80 columns wide. The last line has the numbers of problems,
/// warnings and notes.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool uses_colour);
/// The members of vgpuctl-doctor-1: {"worst": …, "findings": […]}.
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace vgpu::cli
