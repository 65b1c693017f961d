// SPDX-License-Identifier: MIT
//
// StatePort: stores the files that must survive a restart of vgpud. A successful change also
// survives a power cut. Names of files are relative to the state directory. Several threads may
// make calls at the same time for different names. Implemented by adapters/state_files; tests
// implement StatePort in memory, and simulate failures and kills of vgpud.
#pragma once

#include "daemon/ports/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Only the vgpud that holds the lock of the state directory (adapters/run_lock) may change the
/// files.
class StatePort {
public:
    virtual ~StatePort() = default;

    /// The names of all files in the subdirectory gpus, such as "gpus/gpu0.json", in any order.
    /// Fails with StateCorrupt if the subdirectory cannot be read.
    virtual Result<std::vector<std::string>> list() = 0;
    /// The whole file; none if the file does not exist. Fails with StateCorrupt if the file exists
    /// but cannot be read, or if vgpud cannot have written it.
    virtual Result<std::optional<std::string>> read(const std::string& name) = 0;
    /// Replaces the file by `content`. At every moment the file is the old or the new one. The old
    /// file stays as `backup_name`, unless `backup_name` is empty. Fails with StateNotWritten if
    /// success is not certain; the file may then be the old or the new one. Also fails with
    /// StateNotWritten if another program has changed the file, and then leaves the file alone.
    virtual Result<> replace(const std::string& name, std::string_view content,
                             const std::string& backup_name = "") = 0;
    /// Removes the file, if it exists. `backup_name` and errors are as in replace().
    virtual Result<> remove(const std::string& name, const std::string& backup_name = "") = 0;
    /// Path of the file, for error texts.
    [[nodiscard]] virtual std::string where(const std::string& name) const = 0;
};

}  // namespace vgpu::daemon
