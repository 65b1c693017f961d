// SPDX-License-Identifier: MIT
//
// Scenario: a simulation in JSON (schemas/vgpu-scenario.schema.json): device, VFs with contracts
// and work, changes, and policies to compare. The contracts must pass the product's admission.
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
    std::vector<std::string> policies{};  ///< of policy_names()
};

/// Reads a scenario. Its names and the error are made printable ASCII ('?' for other characters).
/// The error names the member, its value and the allowed values.
tl::expected<Scenario, std::string> parse_scenario(std::string_view text);

/// Name of the product (product.h), which is not a Policy.
inline constexpr const char* kProductName = "vgpu";

/// The names of all policies, in the order of tables.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// Null for kProductName and for unknown names.
[[nodiscard]] std::unique_ptr<Policy> policy_named(std::string_view name);

}  // namespace vgpu::simulator
