// SPDX-License-Identifier: MIT
//
// FakeOwners: the processes and virtual machines of a host at the OwnerPort seam.
#pragma once

#include "daemon/ports/owner_port.h"

#include <set>
#include <string>

namespace vgpu::daemon::testing {

class FakeOwners final : public OwnerPort {
public:
    [[nodiscard]] bool process_exists(const ProcessId& id) const override {
        return pids.contains(id.pid);
    }
    [[nodiscard]] std::set<std::string> running_domains() const override { return domains; }

    std::set<int> pids;
    std::set<std::string> domains;
};

}  // namespace vgpu::daemon::testing
