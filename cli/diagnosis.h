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

enum class Level { Ok, Note, Warning, Problem };

std::string_view name_of(Level level);

struct Finding {
    std::string id;  ///< "pci-acs"
    Level level = Level::Ok;
    std::string what;
    std::string why{};  ///< why it matters; empty if it is ok
    std::string fix{};  ///< empty if nothing is to be done

    bool operator==(const Finding&) const = default;
};

[[nodiscard]] std::vector<Finding> diagnose(const HostFacts& facts);

/// The worst level among them; Ok if there are none.
[[nodiscard]] Level worst_of(const std::vector<Finding>& findings);

/// At most 80 columns, ends with a line that counts.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings, bool uses_colour);
/// {"worst": …, "findings": […]}
[[nodiscard]] nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);

}  // namespace vgpu::cli
