// SPDX-License-Identifier: MIT
//
// The journal as bytes: records, each whole or not there. Little endian:
//
//   offset  0   magic, FF 76 67 4A (no UTF-8 text has FF)
//           4   length of the payload, u32
//           8   sequence, u64: the generation of the state after it
//          16   CRC32C of bytes 4..16 and of the payload, u32
//          20   payload, JSON
//
// The first record is the head: its sequence is the generation the journal begins after, its
// payload names the format. Every record was durable before the next one was begun, so only the
// last can be torn. Pure; StateStore writes with it, recovery reads with it
// (docs/durable-state.md).
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

inline constexpr std::size_t kRecordHead = 20;
/// Longer ones are no record; StateStore begins a new checkpoint long before.
inline constexpr std::size_t kMaxPayload = 1u << 20;

/// `payload` points into the bytes that were read.
struct JournalRecord {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;  ///< in the journal
    std::string_view payload;
};

/// Payloads of version 1 hold the records of GPUs whole, those of version 2 what changed in them,
/// those of version 3 also the apply that is under way.
inline constexpr std::uint32_t kJournalVersion = 3;

/// What a sound journal says; views into its bytes.
struct JournalText {
    std::uint32_t version = 0;
    std::uint64_t base = 0;                ///< the generation it begins after
    std::vector<JournalRecord> records{};  ///< base + 1, base + 2 …
    std::uint64_t end = 0;                 ///< of the last whole record
    std::uint64_t torn_bytes = 0;          ///< after it, of a record that was never finished

    [[nodiscard]] std::uint64_t last_sequence() const { return base + records.size(); }
};

/// `payload` has at most kMaxPayload bytes.
[[nodiscard]] std::string encode_record(std::uint64_t sequence, std::string_view payload);
/// A journal without changes that begins after generation `base`.
[[nodiscard]] std::string encode_journal_head(std::uint64_t base,
                                              std::uint32_t version = kJournalVersion);

/// StateCorrupt with the offset, or StateNewer, if there is more amiss than a torn last record.
/// Reads all versions up to kJournalVersion. `path`: of the journal, for the message.
[[nodiscard]] Result<JournalText> read_journal(std::string_view bytes, std::string_view path);
/// What comes before the first damage; nothing if not even the head is sound.
[[nodiscard]] std::optional<JournalText> read_sound_part(std::string_view bytes);

}  // namespace vgpu::daemon
