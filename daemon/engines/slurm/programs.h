// SPDX-License-Identifier: MIT
//
// Programs: implements ProgramPort. Runs Slurm's programs without a shell, with a time limit:
// squeue and scontrol wait 20 s and more for a controller that is out of reach, and slurmd waits
// for vgpu-slurm.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <chrono>

namespace vgpu::slurm {

class Programs final : public ProgramPort {
public:
    static constexpr std::chrono::seconds kLimit{10};

    /// `directory`: where Slurm's programs are; empty: PATH.
    explicit Programs(std::string directory, std::chrono::milliseconds limit = kLimit)
        : directory_(std::move(directory)), limit_(limit) {}

    ProgramResult run(const std::vector<std::string>& argv) override;

private:
    std::string directory_;
    std::chrono::milliseconds limit_;
};

}  // namespace vgpu::slurm
