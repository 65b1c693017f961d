// SPDX-License-Identifier: MIT
//
// StateFiles: implements StatePort with files in vgpud's state directory. replace() writes and
// syncs a temporary file, renames that file over the old one, and syncs the directory. So at every
// moment, even after a power cut, the file is the old or the new one. Any thread may call a
// StateFiles.
#pragma once

#include "daemon/ports/state_port.h"

#include <sys/stat.h>
#include <map>
#include <mutex>

namespace vgpu::daemon::adapters {

/// Errors: StateNotWritten with the operation and the path; StateCorrupt for a file that cannot be
/// read, or that vgpud cannot have written.
class StateFiles final : public StatePort {
public:
    /// Limit in bytes of a file that read() accepts. A longer file is damaged or not from vgpud,
    /// and would use up the memory.
    static constexpr off_t kMaxBytes = 16 << 20;

    explicit StateFiles(std::string directory) : directory_(std::move(directory)) {}

    Result<std::vector<std::string>> list() override;
    Result<std::optional<std::string>> read(const std::string& name) override;
    Result<> replace(const std::string& name, std::string_view content,
                     const std::string& backup_name = "") override;
    Result<> remove(const std::string& name, const std::string& backup_name = "") override;
    [[nodiscard]] std::string where(const std::string& name) const override;

private:
    /// What vgpud compares to notice that another program has changed or replaced a file: the
    /// file's inode, length and time of change (mtime).
    struct Mark {
        ino_t inode = 0;  ///< 0: there is no file
        off_t bytes = 0;
        time_t changed_s = 0;
        long changed_ns = 0;

        bool operator==(const Mark&) const = default;
    };
    [[nodiscard]] static Mark mark_of(const std::string& path);
    /// Fails if another program has changed, replaced, removed or created the file since its mark
    /// was set.
    [[nodiscard]] Result<> check_mark(const std::string& name);
    void set_mark(const std::string& name);

    std::string directory_;
    std::mutex mutex_;  ///< guards marks_
    /// By name: the mark of the file when it was first read or last written. If vgpud writes a name
    /// without a mark, the file must not exist.
    std::map<std::string, Mark> marks_;
};

}  // namespace vgpu::daemon::adapters
