// SPDX-License-Identifier: MIT
//
// VgpudClient: implements VgpudPort over D-Bus. Connects for each call, because the bus and vgpud
// may have been restarted. Waits up to `max_wait` for a vgpud that is starting, but never makes
// D-Bus start a vgpud that was stopped.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <chrono>

namespace vgpu::slurm {

class VgpudClient final : public VgpudPort {
public:
    /// `bus`: "system", "session" or a D-Bus address.
    VgpudClient(std::string bus, std::chrono::milliseconds max_wait)
        : bus_(std::move(bus)), max_wait_(max_wait) {}

    Result<std::vector<AssignedVf>> assign(const std::string& owner,
                                           const std::vector<std::string>& profiles,
                                           const User& user) override;
    Result<std::uint32_t> unassign(const std::string& owner) override;
    Result<std::vector<Claim>> claims() override;
    Result<std::vector<Capacity>> capacity() override;

private:
    std::string bus_;
    std::chrono::milliseconds max_wait_;
};

}  // namespace vgpu::slurm
