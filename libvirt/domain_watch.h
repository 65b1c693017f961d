// SPDX-License-Identifier: MIT
//
// DomainWatch: follows the domains of one libvirt and tells each change as a line of JSON: all of
// them when the connection is there, then each that starts, stops, comes or goes, and that the
// connection is gone. Connects again with a growing delay. Used by main.cpp; one thread, which is
// blocked for as long as libvirtd takes: that is why this is no part of vgpud.
//
//   {"domains": [{"uuid": …, "name": …, "active": true}, …]}   all there are
//   {"domain": {"uuid": …, "name": …, "active": false}}        this one changed
//   {"removed": "UUID"}                                        there is no such domain any more
//   {"lost": "no connection to qemu:///system: …"}             told once for each loss
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

    /// Waits for something to happen, or for `limit`; connects when that is due.
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
