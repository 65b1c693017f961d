// SPDX-License-Identifier: MIT
//
// Domains: the states of libvirt's domains, read from lines of the process vgpu-libvirt, which
// watches libvirt (daemon/libvirt/domain_watch.h). Passes the names of domains to Assignments, and
// reports whether a domain is off. vgpu-libvirt is optional: without its lines, all states are
// unknown. Runs in the main loop.
#pragma once

#include "daemon/service/owners/assignments.h"

#include <map>
#include <string>
#include <string_view>

namespace vgpu::daemon {

class Domains {
public:
    /// Limit of domains. Further domains are ignored, and their states are unknown.
    static constexpr std::size_t kMax = 4096;

    explicit Domains(Assignments& assignments) : assignments_(assignments) {
        assignments.set_is_off(
            [this](const std::string& owner) { return !describe(owner).empty(); });
    }

    /// Reads a line: a JSON object with "domains" (the list of all domains), "domain" (one that has
    /// changed), "removed" (a UUID) or "lost" (libvirt is gone). Ignores other lines, because a
    /// newer vgpu-libvirt may send more.
    void take(std::string_view line);
    /// Call it when vgpu-libvirt has ended. All states become unknown; Assignments keeps the names.
    void forget();

    /// Why the domain of `owner` is off, as text: "domain 'vm1' is shut off" or "libvirt has no
    /// such domain". Empty if the domain runs, if its state is unknown, or if `owner` is not a
    /// domain.
    [[nodiscard]] std::string describe(const std::string& owner) const;

private:
    struct Domain {
        std::string name;
        bool is_active = false;
    };

    void record(const std::string& uuid, Domain domain);

    Assignments& assignments_;
    std::map<std::string, Domain> domains_;
    bool is_known_ = false;  ///< true if the list of all domains was received
};

}  // namespace vgpu::daemon
