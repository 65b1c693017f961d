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

enum class StateFile { Checkpoint, Journal };

class StatePort {
public:
    virtual ~StatePort() = default;

    /// All of the file, or nothing if it does not exist.
    virtual Result<std::optional<std::string>> read(StateFile file) = 0;
    /// Makes `content` the file's: at every instant it is the old or the new one.
    virtual Result<> replace(StateFile file, std::string_view content) = 0;
    /// Writes `bytes` to the journal at offset `end`, where it ends now.
    virtual Result<> append(std::uint64_t end, std::string_view bytes) = 0;
    /// Makes the journal end at `end`, before something that append() may have left.
    virtual Result<> cut(std::uint64_t end) = 0;
    /// For messages: the file's path.
    [[nodiscard]] virtual std::string where(StateFile file) const = 0;
};

}  // namespace vgpu::daemon
