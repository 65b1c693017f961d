// SPDX-License-Identifier: MIT
//
// RequestLimits: limits the number of open requests, because vgpud keeps the message of each open
// request in memory until the reply, which may wait for polkit or a scrub. A request above a limit
// gets TooManyRequests at once. Runs only in the main loop.
#pragma once

#include "daemon/ports/result.h"

#include <sys/types.h>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::dbus {

class RequestLimits {
public:
    static constexpr std::size_t kMaxPerSender = 32;  ///< per connection
    static constexpr std::size_t kMaxPerUser = 40;    ///< over all connections; not for root
    /// Limit of all open requests. Below 128: each request may wait for a reply of polkit, and the
    /// bus lets a connection, here vgpud, wait for at most 128 replies (max_replies_per_connection
    /// in dbus-daemon(1)).
    static constexpr std::size_t kMax = 112;
    static constexpr std::size_t kReserve = 32;  ///< part of kMax that only root may use

    /// A request is open while its ticket exists. A ticket may outlive the RequestLimits.
    using Ticket = std::shared_ptr<const void>;

    /// Admits a request, or returns TooManyRequests. `sender`: unique bus name. `user`: uid of that
    /// connection, as the bus reports it.
    Result<Ticket> admit(const std::string& sender, uid_t user);

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
