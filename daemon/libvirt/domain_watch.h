// SPDX-License-Identifier: MIT
//
// DomainWatch: connects to one libvirtd, and reports its domains and their lifecycle events (start,
// stop, define, undefine …) as lines of JSON. Reconnects with a growing delay. Runs in the process
// vgpu-libvirt and not in vgpud, because a call of libvirt blocks while libvirtd hangs. Not
// thread-safe.
//
//   {"domains": [{"uuid": …, "name": …, "active": true}, …]}   all domains, after connecting
//   {"domain": {"uuid": …, "name": …, "active": false}}        a domain has changed
//   {"removed": "UUID"}                                        a domain no longer exists
//   {"lost": "no connection to qemu:///system: …"}             no connection, or no answer about a
//                                                              domain; sent once until the next
//                                                              connection
#pragma once

#include <libvirt/libvirt.h>
#include <chrono>
#include <functional>
#include <string>

namespace vgpu::libvirt {

class DomainWatch {
public:
    /// The delay before an attempt to reconnect doubles from kFirstDelay to kLongestDelay.
    static constexpr std::chrono::milliseconds kFirstDelay{500};
    static constexpr std::chrono::milliseconds kLongestDelay{30'000};

    /// Gets each line, without a line end.
    using Report = std::function<void(const std::string& line)>;

    /// `uri`: a connection URI of libvirt, such as "qemu:///system".
    DomainWatch(std::string uri, Report report);
    ~DomainWatch();
    DomainWatch(const DomainWatch&) = delete;
    DomainWatch& operator=(const DomainWatch&) = delete;

    /// Connects if there is no connection and the next attempt is due. Then waits at most `limit`
    /// for events of libvirt, and reports them.
    void iterate(std::chrono::milliseconds limit);
    [[nodiscard]] bool is_connected() const { return connection_ != nullptr; }

    // --- called by libvirt during iterate()
    void on_change(virDomainPtr domain);
    /// Only records the loss; iterate() disconnects after the callback has returned.
    void on_close() { why_lost_ = "the connection was closed"; }

private:
    void connect();
    void disconnect(const std::string& why);
    void report_all();

    std::string uri_;
    Report report_;
    virConnectPtr connection_ = nullptr;
    int callback_ = -1;              ///< libvirt's id of on_lifecycle(); -1: not registered
    std::string why_lost_;           ///< why iterate() must disconnect; empty: no reason
    bool is_loss_reported_ = false;  ///< true if the line "lost" was sent since the last connection
    std::chrono::milliseconds delay_ = kFirstDelay;     ///< to wait after the next failure
    std::chrono::steady_clock::time_point next_try_{};  ///< time of the next attempt to connect
};

}  // namespace vgpu::libvirt
