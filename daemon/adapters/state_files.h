// SPDX-License-Identifier: MIT
//
// StateFiles: StatePort over the files in the state directory. Replacing is write-to-temporary,
// fsync, rename, fsync of the directory: at every instant, also after a power cut, a file is the
// old or the new one. Appending is one write and one fdatasync, into zeroes that were written when
// the journal was begun: a file that does not grow has no metadata to sync, which is what the half
// of an append takes, and a disk that fills up meanwhile refuses no change yet. One call at a time
// (StateStore sees to that), from any thread.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/state_port.h"

namespace vgpu::daemon::adapters {

/// Errors are StateNotWritten with the act and the path, and StateCorrupt for what cannot be read.
class StateFiles final : public StatePort {
public:
    /// A file that is longer is none of vgpud's: it is refused rather than read into memory.
    static constexpr std::size_t kMaxBytes = 16u << 20;
    static constexpr const char* kCheckpointName = "vgpud.state.json";
    static constexpr const char* kJournalName = "vgpud.journal";
    static constexpr const char* kCopyName = "vgpud.state.json.bak";

    explicit StateFiles(std::string directory) : directory_(std::move(directory)) {}

    Result<std::optional<std::string>> read(StateFile file) override;
    Result<> replace(StateFile file, std::string_view content) override;
    Result<> append(std::uint64_t end, std::string_view bytes) override;
    Result<> cut(std::uint64_t end) override;
    /// Gives each file that is there a second name, NAME.damaged, before it is replaced.
    Result<> keep_damaged();
    [[nodiscard]] std::string where(StateFile file) const override;

private:
    Result<> open_journal();
    /// Nobody else has replaced, changed or restored it.
    [[nodiscard]] Result<> check_end(std::uint64_t end) const;

    std::string directory_;
    UniqueFd journal_;  ///< open since the first append
    /// As read or written last, with what is reserved; nothing before that.
    std::optional<std::uint64_t> journal_bytes_;
};

}  // namespace vgpu::daemon::adapters
