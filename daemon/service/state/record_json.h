// SPDX-License-Identifier: MIT
//
// Converts records to the text of state files and back. The text is JSON
// (schemas/vgpud-state.schema.json): one file for each GPU, and one for the apply that is under
// way. Each file has a CRC32C of its other content, so that vgpud refuses a file with damaged or
// edited content. Pure; used by StateStore. These functions do not throw.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/config/apply_intent.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// Version of the format: encode_*() writes it, and decode_*() accepts no other.
inline constexpr std::uint32_t kStateVersion = 1;

[[nodiscard]] std::string encode_gpu(const GpuFile& file);
/// Fails with StateCorrupt, or with StateNewer for another version; the error has the reason.
[[nodiscard]] Result<GpuFile> decode_gpu(std::string_view text);
[[nodiscard]] std::string encode_apply(const ApplyIntent& apply);
/// Errors as in decode_gpu().
[[nodiscard]] Result<ApplyIntent> decode_apply(std::string_view text);

}  // namespace vgpu::daemon
