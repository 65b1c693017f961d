// SPDX-License-Identifier: MIT
//
// NoteFile: implements NotePort by a file. Failures are as if there were no note: Slurm is asked.
#pragma once

#include "daemon/engines/slurm/ports.h"

namespace vgpu::slurm {

class NoteFile final : public NotePort {
public:
    /// The file is in a directory that a boot empties, because Slurm may forget at a boot.
    explicit NoteFile(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] std::optional<std::string> load(std::chrono::minutes max_age) const override;
    void save(const std::string& note) override;
    void forget() override;

private:
    std::string path_;
};

}  // namespace vgpu::slurm
