// SPDX-License-Identifier: MIT
//
// LinuxGuest: implements Guest with Facts, KernelLog, Freezer and child processes. Made by
// main.cpp.
#pragma once

#include "vf-agent/facts.h"
#include "vf-agent/freezer.h"
#include "vf-agent/kernel_log.h"
#include "vf-agent/session.h"

namespace vgpu::agent {

/// The destructor does not thaw; Session or the unit's ExecStopPost does.
class LinuxGuest final : public Guest {
public:
    /// `pci_address`: as for Facts.
    explicit LinuxGuest(const std::string& pci_address) : facts_("/", pci_address) {}

    /// Reads the facts each time, because a driver may load between two welcome messages.
    Hello hello() override;
    Status status() override;
    /// Never null: a task that cannot start returns a failure. Refuses self-tests of a quiesced VF.
    std::unique_ptr<Task> start(Request request, Nanoseconds deadline) override;
    /// Never fails. The text has the number of thawed processes; 0 if nothing was frozen.
    Outcome thaw() override;
    void refreeze_users() override;

private:
    class Quiesce;
    /// Freezes the VF's users; false if the freezer failed.
    bool freeze_users();

    Facts facts_;
    KernelLog log_;
    Freezer freezer_;
    bool is_quiesced_ = false;
};

}  // namespace vgpu::agent
