// SPDX-License-Identifier: MIT
//
// connect_unix(): connects to the unix socket at a path.
#pragma once

#include <string>

namespace vgpu::test {

/// Returns 0 or an errno value: ENAMETOOLONG, or an error of connect(2).
int connect_unix(int socket, const std::string& path);

}  // namespace vgpu::test
