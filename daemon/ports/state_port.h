// SPDX-License-Identifier: MIT
//
// Where vgpud keeps what must survive it: two files, the checkpoint (the whole state) and the
// journal (what changed since). What a success says holds after a power cut. After a failure
// nothing is known of the bytes it was about: the caller (StateStore) never builds on them.
// Implemented by adapters/state_files; tests implement it in memory with failures and kills.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

/// Who may change them: one vgpud, which holds the lock of the state directory (adapters/run_lock).
/// The copy is a second checkpoint, for the case that the first is damaged.
enum class StateFile { Checkpoint, Journal, Copy };

class StatePort {
public:
    /// How long a journal becomes before it is begun anew; what an implementation may reserve.
    static constexpr std::uint64_t kJournalBytes = 128u << 10;

    virtual ~StatePort() = default;

    /// All of the file, or nothing if it does not exist.
    /// StateCorrupt if it is there and cannot be read, or is longer than the implementation takes.
    virtual Result<std::optional<std::string>> read(StateFile file) = 0;
    /// Makes `content` the file's: at every instant it is the old or the new one.
    /// StateNotWritten if that is not certain: the file may then be either of the two.
    virtual Result<> replace(StateFile file, std::string_view content) = 0;
    /// Writes `bytes` to the journal at offset `end`, where it ends now.
    /// On disk when it returns. StateNotWritten if not, or if the journal does not end at `end`:
    /// then somebody else has written it, and nothing is appended. After a failure any part of
    /// `bytes` may be there.
    virtual Result<> append(std::uint64_t end, std::string_view bytes) = 0;
    /// Makes the journal end at `end`, before something that append() may have left.
    /// On disk when it returns.
    virtual Result<> cut(std::uint64_t end) = 0;
    /// For messages: the file's path.
    [[nodiscard]] virtual std::string where(StateFile file) const = 0;
};

}  // namespace vgpu::daemon
