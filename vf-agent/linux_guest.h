// SPDX-License-Identifier: MIT
//
// LinuxGuest: implements Guest for a real guest, with Facts, KernelLog, Freezer and ChildTask.
#pragma once

#include "vf-agent/facts.h"
#include "vf-agent/freezer.h"
#include "vf-agent/kernel_log.h"
#include "vf-agent/session.h"

namespace vgpu::agent {

/// The destructor does not thaw processes. Session or the unit's ExecStopPost thaws them.
class LinuxGuest final : public Guest {
public:
    /// `pci_address`: as for Facts.
    explicit LinuxGuest(const std::string& pci_address) : facts_("/", pci_address) {}

    /// Reads the facts at each call, because a driver may load between two calls.
    Hello hello() override;
    Status status() override;
    /// Never null. The returned task fails at its first poll() if the request cannot start. For
    /// example, a quiesced VF cannot start a self-test.
    std::unique_ptr<Task> start(Request request, Nanoseconds deadline) override;
    /// Resumes the stopped processes. Never fails. The Outcome's text has the number of processes.
    Outcome thaw() override;
    void refreeze_users() override;

private:
    class Quiesce;
    /// Freezes the processes that use the VF, except the agent. Returns the number of processes
    /// that were not frozen before. Fails if not all processes can be found or frozen.
    tl::expected<std::size_t, std::string> freeze_users();

    Facts facts_;
    KernelLog log_;
    Freezer freezer_;
    bool is_quiesced_ = false;  ///< true from the start of a quiesce until the thaw
};

}  // namespace vgpu::agent
