// SPDX-License-Identifier: MIT
//
// Domains: libvirt's domains, from lines of vgpu-libvirt (daemon/libvirt/domain_watch.h). Gives
// owners names, and orphans reasons. Optional: without lines nothing is known. Main loop.
#pragma once

#include "daemon/service/owners/assignments.h"

#include <map>
#include <string>
#include <string_view>

namespace vgpu::daemon {

class Domains {
public:
    static constexpr std::size_t kMost = 4096;

    explicit Domains(Assignments& assignments) : assignments_(assignments) {
        assignments.ask_of_domains(
            [this](const std::string& owner) { return !words_for(owner).empty(); });
    }

    /// A JSON object: "domains" (all), "domain" (one that changed), "removed" (a UUID), "lost".
    /// Ignores other lines, because a newer vgpu-libvirt may send more. Keeps at most kMost.
    void take(std::string_view line);
    /// The source is gone: names stay, states become unknown.
    void forget();

    /// "domain 'vm1' is shut off", "libvirt has no such domain"; empty if running or unknown.
    [[nodiscard]] std::string words_for(const std::string& owner) const;

private:
    struct Domain {
        std::string name;
        bool is_active = false;
    };

    void note(const std::string& uuid, Domain domain);

    Assignments& assignments_;
    std::map<std::string, Domain> domains_;
    bool is_known_ = false;  ///< the complete list was received
};

}  // namespace vgpu::daemon
