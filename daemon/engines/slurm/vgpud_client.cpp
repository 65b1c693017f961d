// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/vgpud_client.h"

#include "daemon/engines/vgpud/manager_call.h"

namespace vgpu::slurm {

using engines::Dict;
using engines::manager_call;
using engines::ManagerProxy;
using engines::value_of;

Result<std::vector<AssignedVf>> VgpudClient::assign(const std::string& owner,
                                                    const std::vector<std::string>& profiles,
                                                    const User& user) {
    std::vector<sdbus::Struct<std::string, std::string>> selectors;
    for (const std::string& profile : profiles)
        selectors.emplace_back(std::string("profile"), profile);
    const Dict options{{"uid", sdbus::Variant{user.uid}},
                       {"gid", sdbus::Variant{user.gid}},
                       {"wait_ms", sdbus::Variant{engines::kScrubWaitMs}}};
    return manager_call<std::vector<AssignedVf>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        std::vector<AssignedVf> given;
        for (const Dict& one : manager.Assign(owner, selectors, options))
            given.push_back({.target = value_of<std::string>(one, "Target"),
                             .socket = value_of<std::string>(one, "Socket")});
        return given;
    });
}

Result<std::uint32_t> VgpudClient::unassign(const std::string& owner) {
    return manager_call<std::uint32_t>(
        bus_, max_wait_, [&](ManagerProxy& manager) { return manager.Unassign(owner, {}); });
}

Result<std::vector<Claim>> VgpudClient::claims() {
    const Dict options{
        {"properties", sdbus::Variant{std::string("Owner,LeaseExpires,Profile,Attached")}}};
    return manager_call<std::vector<Claim>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        const Dict columns = manager.ListVfs(options);
        const auto owners = value_of<std::vector<std::string>>(columns, "Owner");
        const auto leases = value_of<std::vector<std::uint64_t>>(columns, "LeaseExpires");
        const auto profiles = value_of<std::vector<std::string>>(columns, "Profile");
        const auto attached = value_of<std::vector<bool>>(columns, "Attached");
        std::vector<Claim> claims;
        for (std::size_t i = 0; i < owners.size(); ++i)
            if (!owners[i].empty())
                claims.push_back({.owner = owners[i],
                                  .profile = profiles.at(i),
                                  .is_open = attached.at(i),
                                  .is_lease_over = engines::is_lease_over(leases.at(i))});
        return claims;
    });
}

Result<std::vector<Capacity>> VgpudClient::capacity() {
    return manager_call<std::vector<Capacity>>(bus_, max_wait_, [&](ManagerProxy& manager) {
        std::vector<Capacity> rows;
        for (const Dict& row : manager.Capacity({}))
            rows.push_back({.gpu = value_of<std::string>(row, "Gpu"),
                            .gpu_state = value_of<std::string>(row, "GpuState"),
                            .profile = value_of<std::string>(row, "Profile"),
                            .total = value_of<std::uint32_t>(row, "Total"),
                            .free = value_of<std::uint32_t>(row, "Free")});
        return rows;
    });
}

}  // namespace vgpu::slurm
