// SPDX-License-Identifier: MIT
//
// DomainWatch follows the domains of one libvirt and reports each change as a line of JSON: all
// domains after it has connected, then each that starts, stops, is defined or undefined, and the
// loss of the connection. It reconnects with a growing delay. Used by main.cpp; one thread. A call
// of libvirt blocks for as long as libvirtd takes: therefore this is not part of vgpud.
//
//   {"domains": [{"uuid": …, "name": …, "active": true}, …]}   all domains
//   {"domain": {"uuid": …, "name": …, "active": false}}        this domain changed
//   {"removed": "UUID"}                                        this domain no longer exists
//   {"lost": "no connection to qemu:///system: …"}             once for each loss
#pragma once

#include <libvirt/libvirt.h>
#include <chrono>
#include <functional>
#include <string>

namespace vgpu::libvirt {

class DomainWatch {
public:
    static constexpr std::chrono::milliseconds kFirstDelay{500};
    static constexpr std::chrono::milliseconds kLongestDelay{30'000};

    using Tell = std::function<void(const std::string& line)>;

    DomainWatch(std::string uri, Tell tell);
    ~DomainWatch();
    DomainWatch(const DomainWatch&) = delete;
    DomainWatch& operator=(const DomainWatch&) = delete;

    /// Connects if that is due, then waits for an event of libvirt, at most for `limit`.
    void turn(std::chrono::milliseconds limit);
    [[nodiscard]] bool is_connected() const { return connection_ != nullptr; }

    // --- called by libvirt
    void on_change(virDomainPtr domain);
    void on_close() { is_lost_ = true; }

private:
    void connect();
    void disconnect(const std::string& why);
    void tell_all();

    std::string uri_;
    Tell tell_;
    virConnectPtr connection_ = nullptr;
    int callback_ = -1;
    bool is_lost_ = false;
    bool is_loss_told_ = false;
    std::chrono::milliseconds delay_ = kFirstDelay;
    std::chrono::steady_clock::time_point next_try_{};
};

}  // namespace vgpu::libvirt
