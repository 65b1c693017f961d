// SPDX-License-Identifier: MIT
//
// called(): how admission messages name a VF. A VF that is not yet created has no number.
#pragma once

#include <fmt/format.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::daemon::scheduler {

/// "'train'"; "VF 3" without a name.
[[nodiscard]] inline std::string called(std::uint32_t vf, std::string_view name) {
    return name.empty() ? fmt::format("VF {}", vf) : fmt::format("'{}'", name);
}

}  // namespace vgpu::daemon::scheduler
