// SPDX-License-Identifier: MIT
//
// VgpudClient: implements VgpudPort over D-Bus. VgpudWatch: waits for changes of GPUs and VFs.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

#include <sdbus-c++/sdbus-c++.h>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

/// Thread-safe.
class VgpudClient final : public VgpudPort {
public:
    /// `bus`: "system", "session" or a D-Bus address. Each call waits up to `max_wait` for a vgpud
    /// that is starting.
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

/// Waits until vgpud starts, ends or signals a change of its property CapacityCounter. This
/// property counts changes of the states of GPUs and of the numbers of VFs by profile. Not
/// thread-safe.
class VgpudWatch {
public:
    /// `bus`: as for VgpudClient.
    explicit VgpudWatch(std::string bus) : bus_name_(std::move(bus)) {}

    /// Waits for a change, for the loss of the bus, or until `wake` (a file descriptor) is
    /// readable, at most for `max_wait`. Does not connect: without a connection to the bus, waits
    /// only for `wake` and `max_wait`.
    void wait(int wake, std::chrono::milliseconds max_wait);
    /// Connects to the bus if there is no connection. False if the bus cannot be reached. Call
    /// connect() before the first read of vgpud, so that later changes end a wait().
    bool connect();

private:
    void subscribe(const std::string& rule);
    bool process();

    std::string bus_name_;
    std::unique_ptr<sdbus::IConnection> bus_;
    bool has_changed_ = false;
};

}  // namespace vgpu::kubernetes
