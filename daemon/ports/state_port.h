// SPDX-License-Identifier: MIT
//
// StatePort stores the state that must survive vgpud: a checkpoint (the whole state) and a journal
// (the changes since). A success holds even after a power cut. After a failure the bytes concerned
// are undefined: the caller (StateStore) never relies on them. Implemented by adapters/state_files;
// tests implement it in memory with failures and kills.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// Only the vgpud that holds the lock of the state directory (adapters/run_lock) may change the
/// files. Copy is a second checkpoint, in case the first is damaged.
enum class StateFile { Checkpoint, Journal, Copy };

class StatePort {
public:
    /// Length at which a new journal is begun; an implementation may reserve this space.
    static constexpr std::uint64_t kJournalBytes = 128u << 10;

    virtual ~StatePort() = default;

    /// The whole file; empty if it does not exist.
    /// StateCorrupt if it exists but cannot be read, or is longer than the implementation allows.
    virtual Result<std::optional<std::string>> read(StateFile file) = 0;
    /// Replaces the file by `content`: at every instant it is the old or the new file.
    /// StateNotWritten if this is not certain: the file may then be either of the two.
    virtual Result<> replace(StateFile file, std::string_view content) = 0;
    /// Appends `bytes` to the journal, which must end at offset `end`.
    /// They are on disk when it returns. StateNotWritten if not, or if the journal does not end at
    /// `end`: then another program has written it, and nothing is appended. After other failures
    /// the journal may contain any part of `bytes`.
    virtual Result<> append(std::uint64_t end, std::string_view bytes) = 0;
    /// Cuts the journal at `end`, to remove bytes that a failed append() may have left.
    /// On disk when it returns.
    virtual Result<> cut(std::uint64_t end) = 0;
    /// Path of the file, for messages.
    [[nodiscard]] virtual std::string where(StateFile file) const = 0;
};

}  // namespace vgpu::daemon
