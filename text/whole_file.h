// SPDX-License-Identifier: MIT
//
// Reads a whole file, for programs that parse documents and device files.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vgpu::text {

/// The bytes of the file, or a positive errno (EISDIR for a directory). Reads a pipe to its end.
/// There is no limit of the size.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path);

}  // namespace vgpu::text
