// SPDX-License-Identifier: MIT
//
// FileState: StatePort over one file, replaced by write-to-temporary, fsync, rename, fsync of the
// directory: at every instant, also after a power cut, the file is the old or the new document.
// Used by StateStore from vgpud's one thread.
#pragma once

#include "daemon/ports/state_port.h"

namespace vgpu::daemon::adapters {

class FileState final : public StatePort {
public:
    static constexpr std::size_t kMaxBytes = 16u << 20;

    FileState(std::string directory, const std::string& name)
        : directory_(std::move(directory)), path_(directory_ + "/" + name) {}

    Result<std::optional<std::string>> load() override;
    Result<> store(std::string_view document) override;
    [[nodiscard]] std::string where() const override { return path_; }

private:
    Result<> write_temporary(const std::string& path, std::string_view document) const;

    std::string directory_;
    std::string path_;
};

}  // namespace vgpu::daemon::adapters
