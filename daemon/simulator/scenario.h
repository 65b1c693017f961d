// SPDX-License-Identifier: MIT
//
// Scenario: a simulation that is read from JSON (schemas/vgpu-scenario.schema.json). A scenario has
// a device, VFs with contracts and work, changes, and policies to compare. The contracts must pass
// vgpud's admission.
#pragma once

#include "daemon/simulator/simulator.h"

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::simulator {

/// A simulation, and the policies under which to run it.
struct Scenario {
    Simulation setup{};
    std::vector<std::string> policies{};  ///< each is one of policy_names()
};

/// Reads a scenario. For most mistakes, the error names the wrong member, its value and the allowed
/// values. Makes the scenario's names, and the error, printable (text/utf8.h).
tl::expected<Scenario, std::string> parse_scenario(std::string_view text);

/// Name of the product (product.h), which is not a Policy.
inline constexpr const char* kProductName = "vgpu";

/// kProductName and the names of all policies. A scenario without `policies` compares these, in
/// this order.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// The policy with this name. Null for kProductName and for unknown names.
[[nodiscard]] std::unique_ptr<Policy> policy_named(std::string_view name);

}  // namespace vgpu::simulator
