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

class LinuxGuest final : public Guest {
public:
    /// `pci_address`: which VF; empty: the first.
    explicit LinuxGuest(const std::string& pci_address) : facts_("/", pci_address) {}

    Hello hello() override;
    Status status() override;
    std::unique_ptr<Task> start(Act act, Nanoseconds deadline) override;
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
