// SPDX-License-Identifier: MIT
//
// PublishedFile: implements PublishedPort with a file. If the file cannot be written, there is no
// record, and the next health check publishes again.
#pragma once

#include "daemon/engines/slurm/ports.h"

namespace vgpu::slurm {

class PublishedFile final : public PublishedPort {
public:
    /// `path` must be in a directory that is empty after a boot, such as /run, because Slurm may
    /// lose the published values when the host boots.
    explicit PublishedFile(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] std::optional<std::string> load(std::chrono::minutes max_age) const override;
    void save(const std::string& published) override;
    void forget() override;

private:
    std::string path_;
};

}  // namespace vgpu::slurm
