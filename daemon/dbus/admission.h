// SPDX-License-Identifier: MIT
//
// Admission: how many requests may be under way. Each holds its message until it is answered, which
// may take as long as polkit asks a person or a scrub lasts; so there are at most kMostPerSender of
// one connection, kMostPerUser of one user and kMost in all, of which kReserve are root's alone.
// The rest is refused at once (TooManyRequests). Used by authorized(); main loop only.
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
    static constexpr std::size_t kMostPerUser = 40;  ///< however many connections; not for root
    /// dbus-daemon lets a connection wait for 128 replies (max_replies_per_connection in
    /// dbus-daemon(1)), so polkit cannot be asked about more at once.
    static constexpr std::size_t kMost = 112;
    static constexpr std::size_t kReserve = 32;

    /// The request is under way as long as the ticket lives; it may outlive the Admission.
    using Ticket = std::shared_ptr<const void>;

    /// `sender` is a unique bus name, `user` whose connection it is, as the bus says.
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
