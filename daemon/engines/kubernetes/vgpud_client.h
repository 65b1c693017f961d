// SPDX-License-Identifier: MIT
//
// VgpudClient: implements VgpudPort by D-Bus. VgpudWatch waits for changes of GPUs and VFs.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <sdbus-c++/sdbus-c++.h>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Any thread may call a VgpudClient.
class VgpudClient final : public VgpudPort {
public:
    /// `bus`: "system", "session" or an address. Waits up to `max_wait` for a vgpud that is
    /// starting.
    VgpudClient(std::string bus, std::chrono::milliseconds max_wait)
        : bus_(std::move(bus)), max_wait_(max_wait) {}

    Result<std::vector<HostVf>> vfs() override;
    Result<> assign(const std::string& owner, const std::string& owner_name,
                    const std::vector<std::string>& names, const SocketUser& user) override;
    Result<std::uint32_t> unassign(const std::string& owner) override;

private:
    std::string bus_;
    std::chrono::milliseconds max_wait_;
};

/// Waits for a change of vgpud's CapacityCounter, which counts changes of the states of GPUs and of
/// the numbers of VFs by profile, and for vgpud to start or end. Runs in one thread.
class VgpudWatch {
public:
    explicit VgpudWatch(std::string bus) : bus_name_(std::move(bus)) {}

    /// Waits until something changed, the bus is lost, `wake` (a file descriptor) is readable, or
    /// `max_wait` is over. Without a connection to the bus, which only connect() makes, waits only
    /// for `wake` and `max_wait`. False if `max_wait` was over first.
    bool wait(int wake, std::chrono::milliseconds max_wait);
    /// Connects to the bus unless connected. True if the bus is reachable. Call connect() before
    /// the first read of vgpud, so that later changes wake wait().
    bool connect();

private:
    void subscribe(const std::string& rule);
    bool process();

    std::string bus_name_;
    std::unique_ptr<sdbus::IConnection> bus_;
    bool has_changed_ = false;
};

}  // namespace vgpu::kubernetes
