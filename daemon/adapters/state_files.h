// SPDX-License-Identifier: MIT
//
// StateFiles implements StatePort with the files in the state directory. To replace a file it
// writes a temporary one, fsync, rename, fsync of the directory: at every instant, even after a
// power cut, the file is the old or the new one. An append is one write and one fdatasync, into
// zeroes that were written when the journal was begun: a file that does not grow has no metadata to
// sync, which saves half of the time, and a disk that fills up later refuses no change at first.
// One call at a time (StateStore ensures that), from any thread.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/state_port.h"

namespace vgpu::daemon::adapters {

/// Errors are StateNotWritten with the act and the path, and StateCorrupt for an unreadable file.
class StateFiles final : public StatePort {
public:
    /// vgpud never writes a longer file, so a longer one is refused rather than read into memory.
    static constexpr std::size_t kMaxBytes = 16u << 20;
    static constexpr const char* kCheckpointName = "vgpud.state.json";
    static constexpr const char* kJournalName = "vgpud.journal";
    static constexpr const char* kCopyName = "vgpud.state.json.bak";

    explicit StateFiles(std::string directory) : directory_(std::move(directory)) {}

    Result<std::optional<std::string>> read(StateFile file) override;
    Result<> replace(StateFile file, std::string_view content) override;
    Result<> append(std::uint64_t end, std::string_view bytes) override;
    Result<> cut(std::uint64_t end) override;
    /// Gives each existing file a second name, NAME.damaged, before it is replaced.
    Result<> keep_damaged();
    [[nodiscard]] std::string where(StateFile file) const override;

private:
    Result<> open_journal();
    /// Fails if the journal was replaced, changed or restored by someone else.
    [[nodiscard]] Result<> check_end(std::uint64_t end) const;

    std::string directory_;
    UniqueFd journal_;  ///< open since the first append
    /// Length of the journal as last read or written, with the reserved zeroes; empty before that.
    std::optional<std::uint64_t> journal_bytes_;
};

}  // namespace vgpu::daemon::adapters
