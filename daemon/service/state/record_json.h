// SPDX-License-Identifier: MIT
//
// The state files as JSON (schemas/vgpud-state.schema.json): one for each GPU, and one for the
// apply that is under way. Each has a CRC32C over the rest, so that a file that a disk or an editor
// has changed is refused. Pure; used by StateStore. Nothing here throws.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/config/apply_intent.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::daemon {

inline constexpr std::uint32_t kStateVersion = 1;

[[nodiscard]] std::string encode_gpu(const GpuFile& file);
/// StateCorrupt or StateNewer with the reason.
[[nodiscard]] Result<GpuFile> decode_gpu(std::string_view text);
[[nodiscard]] std::string encode_apply(const ApplyIntent& apply);
/// As decode_gpu().
[[nodiscard]] Result<ApplyIntent> decode_apply(std::string_view text);

}  // namespace vgpu::daemon
