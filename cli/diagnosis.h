// SPDX-License-Identifier: MIT
//
// The checks of `vgpuctl doctor`. They turn facts into findings, each with a level, why it matters
// and how to fix it. Pure: the same facts give the same findings in the same order. The ids are
// stable and documented in docs/vgpuctl.md.
#pragma once

#include "cli/host_facts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// In ascending order: worst_of() compares. A Problem makes doctor end with ExitCode::Failed, a
/// Warning does not; a Note marks a check that was not made, or a fact that is not a fault.
enum class Level { Ok, Note, Warning, Problem };

/// "ok", "note", "warning", "problem"; the JSON uses the same words.
std::string_view name_of(Level level);

/// One statement. Several findings may have the same id, one for each GPU, VF or file.
struct Finding {
    std::string id;  ///< "pci-acs"
    Level level = Level::Ok;
    std::string what;
    std::string why{};  ///< why it matters; empty if it is ok
    std::string fix{};  ///< empty if there is nothing to do

    bool operator==(const Finding&) const = default;
};

/// Runs all checks; missing facts give a Note, not a Problem. VFs, GPUs and versions are checked
/// only if vgpud answered.
[[nodiscard]] std::vector<Finding> diagnose(const HostFacts& facts);

/// The worst level; Ok if there are no findings.
[[nodiscard]] Level worst_of(const std::vector<Finding>& findings);

/// At most 80 columns; the last line counts the findings.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool uses_colour);
/// {"worst": …, "findings": […]}
/// The members of schema vgpuctl-doctor-1, without its "schema".
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace vgpu::cli
