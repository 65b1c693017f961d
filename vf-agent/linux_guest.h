// SPDX-License-Identifier: MIT
//
// LinuxGuest implements Guest on the real system. It uses Facts, KernelLog, Freezer, and child
// processes for the self-test. main.cpp makes it.
#pragma once

#include "vf-agent/facts.h"
#include "vf-agent/freezer.h"
#include "vf-agent/kernel_log.h"
#include "vf-agent/session.h"

namespace vgpu::agent {

/// The destructor thaws nothing: Session does, or the unit's ExecStopPost after a kill.
class LinuxGuest final : public Guest {
public:
    /// `pci_address` selects the VF; empty: the first one.
    explicit LinuxGuest(const std::string& pci_address) : facts_("/", pci_address) {}

    /// Reads the facts at each call: a driver may be loaded between two welcomes.
    Hello hello() override;
    Status status() override;
    /// Never null: if the act cannot start, the task has already failed. A self-test of a quiesced
    /// VF is refused, because its process would be frozen with the others.
    std::unique_ptr<Task> start(Act act, Nanoseconds deadline) override;
    /// Always ok; if nothing is frozen, the text says so with a count of 0.
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
