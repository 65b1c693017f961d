// SPDX-License-Identifier: MIT
//
// CRC32C (Castagnoli, as in iSCSI, RFC 3720 appendix B.4). Detects every burst of up to 32 changed
// bits, but does not protect against deliberate changes. Pure; used for state files and recordings.
#pragma once

#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// The CRC32C of `bytes`; 0 for no bytes.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

}  // namespace vgpu::daemon
