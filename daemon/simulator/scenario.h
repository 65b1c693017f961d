// SPDX-License-Identifier: MIT
//
// Scenario: a simulation described in a JSON file (schemas/vgpu-scenario.schema.json): a device,
// VFs with contracts and work, changes on the way, and the policies to compare. The contracts pass
// the product's admission, so a scenario simulates only what vgpud would accept.
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

/// Names become printable ASCII, with '?' for unprintable characters; so does the error, which
/// names the member, its value and the values that it takes.
tl::expected<Scenario, std::string> parse_scenario(std::string_view text);

/// Not a Policy: the product (product.h).
inline constexpr const char* kProductName = "vgpu";

/// Names for `policies`, in the order of tables.
[[nodiscard]] const std::vector<std::string>& policy_names();
/// A new policy; none for kProductName and unknown names.
[[nodiscard]] std::unique_ptr<Policy> policy_named(std::string_view name);

}  // namespace vgpu::simulator
