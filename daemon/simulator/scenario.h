// SPDX-License-Identifier: MIT
//
// Scenario: a simulation from a JSON text (schemas/vgpu-scenario.schema.json). A scenario has a
// device, VFs with contracts and work, changes, and policies to compare. Its contracts must pass
// the product's admission.
#pragma once

#include "daemon/simulator/simulator.h"

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::simulator {

struct Scenario {
    Simulation setup{};
    std::vector<std::string> policies{};  ///< each is one of policy_names()
};

/// Reads a scenario. The error names the wrong member, its value and the allowed values. Makes the
/// scenario's names, and the error, printable (text/utf8.h).
tl::expected<Scenario, std::string> parse_scenario(std::string_view text);

/// Name of the product (product.h), which is not a Policy.
inline constexpr const char* kProductName = "vgpu";

/// The names of all policies, in the order of tables.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// The policy with this name. Null for kProductName and for unknown names.
[[nodiscard]] std::unique_ptr<Policy> policy_named(std::string_view name);

}  // namespace vgpu::simulator
