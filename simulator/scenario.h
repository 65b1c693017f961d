// SPDX-License-Identifier: MIT
//
// Scenario: a simulation described in a JSON file (schemas/vgpu-scenario.schema.json): a device,
// VFs with contracts and work, changes on the way, and the policies to compare. The contracts go
// through the product's admission, so a scenario simulates what vgpud would have accepted.
#pragma once

#include "simulator/simulator.h"

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

/// Names come out as printable ASCII, with '?' for what was not printable; the error, too, which
/// names the member, its value and what it takes.
tl::expected<Scenario, std::string> parse_scenario(std::string_view text);

/// Not a Policy: what is shipped (product.h).
inline constexpr const char* kProductName = "vgpu";

/// Names for `policies`, in the order of tables.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// A new policy; none for kProductName and names that there are not.
[[nodiscard]] std::unique_ptr<Policy> policy_named(std::string_view name);

}  // namespace vgpu::simulator
