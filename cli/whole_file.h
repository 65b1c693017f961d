// SPDX-License-Identifier: MIT
//
// Reads a whole file: configurations, domains, files in /proc. A directory can be opened but not
// read; that is an error result here, not an exception.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vgpu::cli {

/// The bytes of the file, or the errno of the failure: positive, EISDIR for a directory.
/// A pipe is read to its end.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path);

}  // namespace vgpu::cli
