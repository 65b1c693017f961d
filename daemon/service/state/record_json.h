// SPDX-License-Identifier: MIT
//
// Records as JSON: the checkpoint (schemas/vgpud-state.schema.json), which is all of them with a
// checksum, and the changes that a record of the journal holds: of each GPU that changed its
// settings and those VFs that changed, whole; and the apply that is under way, if that changed.
// Pure; used by StateStore and recovery. Nothing here
// throws.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// Records of GPUs by id; those of a change are the ones it replaces.
using Changes = std::map<std::string, GpuRecord>;

/// A checkpoint as read; version 1 had no journal beside it, version 2 no contracts
/// (`qos`), version 3 no `custody`, version 4 no `apply`.
struct Checkpoint {
    std::uint32_t version = 0;
    Records records;
};

inline constexpr std::uint32_t kCheckpointVersion = 5;
/// From this one on there is a journal.
inline constexpr std::uint32_t kFirstWithJournal = 2;

/// With a CRC32C over the rest, so that a checkpoint that a disk or an editor has changed is
/// refused.
[[nodiscard]] std::string encode_records(const Records& records);
/// StateCorrupt or StateNewer with the reason.
/// Reads all versions up to kCheckpointVersion; what an older one does not have gets its default.
[[nodiscard]] Result<Checkpoint> decode_checkpoint(std::string_view document);
[[nodiscard]] Result<Records> decode_records(std::string_view document);

/// What makes the records of `after` of those in `before`; one that is not there counts as one
/// with defaults. `apply`: what apply is under way from now on, or that none is; null: as before.
/// `time`: when that is; nothing: as before.
[[nodiscard]] std::string encode_changes(const Changes& before, const Changes& after,
                                         const std::optional<ApplyIntent>* apply = nullptr,
                                         const std::optional<LeaseTime>& time = {});
/// Makes of `records` what they are after the change, but for their generation; they stay as they
/// are if it fails.
/// StateCorrupt with the reason. `version` of the journal: in version 1 records of GPUs are whole.
Result<> apply_changes(std::string_view payload, std::uint32_t version, Records& records);

}  // namespace vgpu::daemon
