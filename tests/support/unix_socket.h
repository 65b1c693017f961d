// SPDX-License-Identifier: MIT
//
// Connecting to a unix socket at a path.
#pragma once

#include <string>

namespace vgpu::test {

/// 0, or why nobody is reached there: ENAMETOOLONG, or as connect(2).
int connect_unix(int socket, const std::string& path);

}  // namespace vgpu::test
