// SPDX-License-Identifier: MIT
//
// The checks of `vgpuctl doctor`: facts in, findings out, with level, reason and fix. Pure and
// ordered. docs/vgpuctl.md documents the ids, which are stable.
#pragma once

#include "cli/host_facts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Ascending, for worst_of(). Only a Problem makes doctor fail; a Note is not a fault.
enum class Level { Ok, Note, Warning, Problem };

/// The words of the JSON output, too.
std::string_view name_of(Level level);

/// An id may occur for several GPUs, VFs or files.
struct Finding {
    std::string id;  ///< "pci-acs"
    Level level = Level::Ok;
    std::string what;
    std::string why{};  ///< why it matters; empty if ok
    std::string fix{};  ///< empty if there is nothing to do

    bool operator==(const Finding&) const = default;
};

/// Missing facts give a Note. VFs, GPUs and versions need an answer of vgpud.
[[nodiscard]] std::vector<Finding> diagnose(const HostFacts& facts);

/// Ok without findings.
[[nodiscard]] Level worst_of(const std::vector<Finding>& findings);

/// At most 80 columns; the last line counts findings.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool uses_colour);
/// {"worst": …, "findings": […]}, members of vgpuctl-doctor-1.
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace vgpu::cli
