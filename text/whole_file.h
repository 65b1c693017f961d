// SPDX-License-Identifier: MIT
//
// Reads a whole file. For a directory, which can be opened but not read, the result is an error.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vgpu::text {

/// The bytes, or a positive errno. Reads a pipe to its end.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path);

}  // namespace vgpu::text
