// SPDX-License-Identifier: MIT
//
// How messages of admission call a VF: an operator knows names, and a VF that is yet to be made has
// no number.
#pragma once

#include <fmt/format.h>
#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::daemon::scheduler {

/// "'train'"; "VF 3" if there is no name.
[[nodiscard]] inline std::string called(std::uint32_t vf, std::string_view name) {
    return name.empty() ? fmt::format("VF {}", vf) : fmt::format("'{}'", name);
}

}  // namespace vgpu::daemon::scheduler
