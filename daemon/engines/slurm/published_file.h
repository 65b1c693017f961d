// SPDX-License-Identifier: MIT
//
// PublishedFile: implements PublishedPort by a file. If a write fails, there is no record, and the
// next health check publishes again.
#pragma once

#include "daemon/engines/slurm/ports.h"

namespace vgpu::slurm {

class PublishedFile final : public PublishedPort {
public:
    /// `path` must be in a directory that a boot empties, because Slurm may lose the published
    /// values at a boot.
    explicit PublishedFile(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] std::optional<std::string> load(std::chrono::minutes max_age) const override;
    void save(const std::string& published) override;
    void forget() override;

private:
    std::string path_;
};

}  // namespace vgpu::slurm
