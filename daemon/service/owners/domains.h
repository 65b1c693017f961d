// SPDX-License-Identifier: MIT
//
// Domains: what libvirt says about its domains, as lines of vgpu-libvirt tell it
// (daemon/libvirt/domain_watch.h). Gives owners their names, and orphans the reason that libvirt
// knows. Nothing depends on it: without a line nothing is known. Main loop only.
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

    /// A line that is none is ignored: a newer vgpu-libvirt may say more.
    /// A JSON object: "domains" (all there are), "domain" (one that changed), "removed" (a UUID),
    /// "lost". At most kMost are kept.
    void take(std::string_view line);
    /// Nobody tells any more; names stay, states are not known.
    void forget();

    /// "domain 'vm1' is shut off", "libvirt has no such domain"; empty: running, no domain, or not
    /// known, as where there may be more domains than are kept.
    [[nodiscard]] std::string words_for(const std::string& owner) const;

private:
    struct Domain {
        std::string name;
        bool is_active = false;
    };

    void note(const std::string& uuid, Domain domain);

    Assignments& assignments_;
    std::map<std::string, Domain> domains_;  ///< by UUID
    bool is_known_ = false;                  ///< all there are have been told
};

}  // namespace vgpu::daemon
