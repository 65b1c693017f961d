// SPDX-License-Identifier: MIT
//
// Reads a whole file, for programs that parse documents and device files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace vgpu::text {

/// The bytes of the file, or a positive errno (EISDIR for a directory, EFBIG for more than
/// `max_bytes`). Reads a pipe to its end. Give `max_bytes` for a file whose size another user can
/// choose, such as /proc/PID/cmdline.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path,
                                                        std::size_t max_bytes = SIZE_MAX);

}  // namespace vgpu::text
