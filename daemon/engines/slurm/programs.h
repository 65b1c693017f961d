// SPDX-License-Identifier: MIT
//
// Programs: implements ProgramPort. Runs Slurm's programs without a shell and with a time limit. If
// slurmctld is out of reach, squeue and scontrol wait 20 s or more; without the limit, slurmd would
// wait for vgpu-slurm as long.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <chrono>

namespace vgpu::slurm {

class Programs final : public ProgramPort {
public:
    /// Default time limit of a program.
    static constexpr std::chrono::seconds kLimit{10};

    /// `directory`: the directory of Slurm's programs; if empty, PATH is searched.
    explicit Programs(std::string directory, std::chrono::milliseconds limit = kLimit)
        : directory_(std::move(directory)), limit_(limit) {}

    ProgramResult run(const std::vector<std::string>& argv) override;

private:
    std::string directory_;
    std::chrono::milliseconds limit_;
};

}  // namespace vgpu::slurm
