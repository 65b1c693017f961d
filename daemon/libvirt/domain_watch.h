// SPDX-License-Identifier: MIT
//
// DomainWatch: follows the domains of one libvirtd and reports changes as lines of JSON. Reconnects
// with a growing delay. Runs outside of vgpud, because calls of libvirt block while libvirtd
// blocks. Used by main.cpp in one thread.
//
//   {"domains": [{"uuid": …, "name": …, "active": true}, …]}   all domains, after connecting
//   {"domain": {"uuid": …, "name": …, "active": false}}        a domain has changed
//   {"removed": "UUID"}                                        a domain no longer exists
//   {"lost": "no connection to qemu:///system: …"}             once per loss
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

    using Report = std::function<void(const std::string& line)>;

    DomainWatch(std::string uri, Report report);
    ~DomainWatch();
    DomainWatch(const DomainWatch&) = delete;
    DomainWatch& operator=(const DomainWatch&) = delete;

    /// Connects if that is due, then waits at most `limit` for an event.
    void iterate(std::chrono::milliseconds limit);
    [[nodiscard]] bool is_connected() const { return connection_ != nullptr; }

    // --- called by libvirt
    void on_change(virDomainPtr domain);
    void on_close() { is_lost_ = true; }

private:
    void connect();
    void disconnect(const std::string& why);
    void report_all();

    std::string uri_;
    Report report_;
    virConnectPtr connection_ = nullptr;
    int callback_ = -1;              ///< libvirt's id of on_lifecycle(); -1: not registered
    bool is_lost_ = false;           ///< true if libvirt has closed connection_
    bool is_loss_reported_ = false;  ///< true if the line "lost" was sent since the last connection
    std::chrono::milliseconds delay_ = kFirstDelay;  ///< from the next failure to the next attempt
    std::chrono::steady_clock::time_point next_try_{};  ///< when to connect, if not connected
};

}  // namespace vgpu::libvirt
