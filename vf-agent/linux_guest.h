// SPDX-License-Identifier: MIT
//
// LinuxGuest: Guest over the real system: Facts, KernelLog, Freezer, and children for the
// self-test. Made by main.cpp.
#pragma once

#include "vf-agent/facts.h"
#include "vf-agent/freezer.h"
#include "vf-agent/kernel_log.h"
#include "vf-agent/session.h"

namespace vgpu::agent {

/// Its destructor thaws nothing: that is Session's act, and the unit's ExecStopPost for an agent
/// that was killed.
class LinuxGuest final : public Guest {
public:
    /// `pci_address`: which VF; empty: the first.
    explicit LinuxGuest(const std::string& pci_address) : facts_("/", pci_address) {}

    /// Read anew at each call: a driver may be loaded between two welcomes.
    Hello hello() override;
    Status status() override;
    /// Never null: what cannot be started is a task that has failed. A self-test of a quiesced VF
    /// is refused, since its process would be frozen with the others.
    std::unique_ptr<Task> start(Act act, Nanoseconds deadline) override;
    /// Always ok; with nothing frozen it says that 0 processes go on.
    Outcome thaw() override;
    void hold() override;

private:
    class Quiesce;
    /// False if the freezer failed.
    bool freeze_users();

    Facts facts_;
    KernelLog log_;
    Freezer freezer_;
    bool is_quiesced_ = false;
};

}  // namespace vgpu::agent
