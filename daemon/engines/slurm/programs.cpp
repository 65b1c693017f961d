// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/programs.h"

#include "text/child.h"

namespace vgpu::slurm {

ProgramResult Programs::run(const std::vector<std::string>& argv) {
    constexpr std::size_t kMaxBytes = 64u << 20;  // limit of each output; above: status 124
    std::vector<std::string> command = argv;
    if (!directory_.empty()) command.front() = directory_ + "/" + command.front();
    text::Finished finished = text::run_child(command, limit_, kMaxBytes);
    return {
        .status = finished.status, .out = std::move(finished.out), .err = std::move(finished.err)};
}

}  // namespace vgpu::slurm
