// SPDX-License-Identifier: MIT
//
// A file read as a whole, for whoever is given its name: configurations, domains, what the kernel
// shows in /proc. Directories open like files and fail when they are read; that is an error here
// and no exception.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace vgpu::cli {

/// The bytes of the file, or the errno of what failed: positive, EISDIR for a directory.
/// A pipe is read to its end.
[[nodiscard]] tl::expected<std::string, int> whole_file(const std::string& path);

}  // namespace vgpu::cli
