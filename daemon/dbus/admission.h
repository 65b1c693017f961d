// SPDX-License-Identifier: MIT
//
// Admission limits the number of open requests. Each keeps its message until the reply, which may
// take as long as polkit asks a person or a scrub lasts. So there are at most kMostPerSender of one
// connection, kMostPerUser of one user and kMost in all, of which kReserve are only for root.
// Others get TooManyRequests at once. Used by authorized() and answered(); main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <sys/types.h>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

class Admission {
public:
    static constexpr std::size_t kMostPerSender = 32;
    static constexpr std::size_t kMostPerUser = 40;  ///< over all connections; not for root
    /// dbus-daemon lets a connection wait for 128 replies (max_replies_per_connection in
    /// dbus-daemon(1)), so vgpud cannot ask polkit about more requests at once.
    static constexpr std::size_t kMost = 112;
    static constexpr std::size_t kReserve = 32;

    /// The request is open as long as the ticket exists; a ticket may outlive the Admission.
    using Ticket = std::shared_ptr<const void>;

    /// `sender` is a unique bus name, `user` the user of that connection, from the bus.
    Result<Ticket> admit(const std::string& sender, uid_t user);
    [[nodiscard]] std::size_t under_way() const { return counts_->total; }

private:
    struct Counts {
        std::map<std::string, std::size_t> by_sender;
        std::map<uid_t, std::size_t> by_user;
        std::size_t total = 0;
    };
    [[nodiscard]] Result<> check(const std::string& sender, uid_t user) const;

    std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace vgpu::daemon::dbus
