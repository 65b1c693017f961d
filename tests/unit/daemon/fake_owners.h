// SPDX-License-Identifier: MIT
//
// FakeOwners: the processes and virtual machines of a host at the OwnerPort seam.
#pragma once

#include "daemon/ports/owner_port.h"

#include <map>
#include <set>
#include <string>

namespace vgpu::daemon::testing {

class FakeOwners final : public OwnerPort {
public:
    [[nodiscard]] std::optional<bool> process_exists(const ProcessId& id) const override {
        const auto start_time = start_time_of(id.pid);
        return start_time && (id.start_time == 0 || id.start_time == *start_time);
    }
    [[nodiscard]] std::optional<std::uint64_t> start_time_of(int pid) const override {
        const auto process = processes.find(pid);
        if (process == processes.end()) return {};
        return process->second;
    }
    [[nodiscard]] std::optional<std::set<std::string>> running_domains() const override {
        return domains;
    }

    [[nodiscard]] std::string client_of(const std::string& path) const override {
        const auto client = clients.find(path);
        return client == clients.end() ? "" : client->second;
    }

    std::map<std::string, std::string> clients;  ///< of a VF's socket
    std::map<int, std::uint64_t> processes;      ///< pid, start time
    std::set<std::string> domains;
};

}  // namespace vgpu::daemon::testing
