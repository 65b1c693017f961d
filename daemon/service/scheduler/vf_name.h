// SPDX-License-Identifier: MIT
//
// describe_vf(): makes the text that names a VF in refusals of contracts and weights. Prefers the
// VF's name, because a VF that does not exist yet has no number.
#pragma once

#include <fmt/format.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::daemon::scheduler {

/// "'train'", or "VF 3" for a VF without a name.
[[nodiscard]] inline std::string describe_vf(std::uint32_t vf, std::string_view name) {
    return name.empty() ? fmt::format("VF {}", vf) : fmt::format("'{}'", name);
}

}  // namespace vgpu::daemon::scheduler
