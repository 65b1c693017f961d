// SPDX-License-Identifier: MIT
//
// The judgement of `vgpuctl doctor`: what of the facts is well, worth knowing, doubtful or wrong,
// why that matters and what mends it. Pure: the same facts, the same findings, in the same order.
// The ids are stable and documented in docs/vgpuctl.md.
#pragma once

#include "cli/host_facts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vgpu::cli {

/// In ascending order: worst_of() compares. A Problem makes doctor end with ExitCode::Failed, a
/// Warning does not; a Note is what was not checked, or is no fault.
enum class Level { Ok, Note, Warning, Problem };

/// "ok", "note", "warning", "problem": also the words of the JSON.
std::string_view name_of(Level level);

/// One statement. Several findings may have the same id, one for each GPU, VF or file.
struct Finding {
    std::string id;  ///< "pci-acs"
    Level level = Level::Ok;
    std::string what;
    std::string why{};  ///< why it matters; empty if it is ok
    std::string fix{};  ///< empty if nothing is to be done

    bool operator==(const Finding&) const = default;
};

/// Checks what there is to check: facts that are missing give a Note, not a Problem. VFs, GPUs and
/// versions are only judged when vgpud answered.
[[nodiscard]] std::vector<Finding> diagnose(const HostFacts& facts);

/// The worst level among them; Ok if there are none.
[[nodiscard]] Level worst_of(const std::vector<Finding>& findings);

/// At most 80 columns, ends with a line that counts.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool uses_colour);
/// {"worst": …, "findings": […]}
/// The members of schema vgpuctl-doctor-1, without its "schema".
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace vgpu::cli
