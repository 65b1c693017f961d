// SPDX-License-Identifier: MIT
//
// Domains: the state of libvirt's domains, from lines of vgpu-libvirt
// (daemon/libvirt/domain_watch.h). Passes the names of domains to Assignments, and reports
// whether a domain is off. vgpu-libvirt is optional: without its lines, all states are unknown.
// Runs in the main loop.
#pragma once

#include "daemon/service/owners/assignments.h"

#include <map>
#include <string>
#include <string_view>

namespace vgpu::daemon {

class Domains {
public:
    static constexpr std::size_t kMax = 4096;

    explicit Domains(Assignments& assignments) : assignments_(assignments) {
        assignments.set_is_off(
            [this](const std::string& owner) { return !describe(owner).empty(); });
    }

    /// Reads a line, a JSON object: "domains" (all domains), "domain" (a changed domain), "removed"
    /// (a UUID), "lost". Ignores other lines, because a newer vgpu-libvirt may send more. Keeps at
    /// most kMax domains.
    void take(std::string_view line);
    /// Call it when the source is gone. Names stay, and states become unknown.
    void forget();

    /// Why the domain of `owner` is off, as text: "domain 'vm1' is shut off" or "libvirt has no
    /// such domain". Empty if the domain runs, if its state is unknown, or if `owner` is no domain.
    [[nodiscard]] std::string describe(const std::string& owner) const;

private:
    struct Domain {
        std::string name;
        bool is_active = false;
    };

    void record(const std::string& uuid, Domain domain);

    Assignments& assignments_;
    std::map<std::string, Domain> domains_;
    bool is_known_ = false;  ///< true if the complete list was received
};

}  // namespace vgpu::daemon
