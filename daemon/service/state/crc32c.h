// SPDX-License-Identifier: MIT
//
// CRC32C (Castagnoli, as in iSCSI, RFC 3720 appendix B.4): finds every burst of up to 32 bits in a
// record of the journal, not malice. A table of its own: Debian 12 has no small library for it
// (docs/decisions/0005-durable-state.md). Pure; used by the journal and the checkpoint.
#pragma once

#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

/// CRC32C of `bytes`; or of what had the CRC `before`, followed by `bytes`.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

}  // namespace vgpu::daemon
