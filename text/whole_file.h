// SPDX-License-Identifier: MIT
//
// Reads a whole file.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vgpu::text {

/// The bytes of the file, or a positive errno, also for a directory. Reads a pipe to its end.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path);

}  // namespace vgpu::text
