// SPDX-License-Identifier: MIT
//
// FakeVmSockets: the paths and sockets of owners in memory, at the VmSocketsPort seam.
#pragma once

#include "daemon/ports/vm_sockets_port.h"

#include <map>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

class FakeVmSockets final : public VmSocketsPort {
public:
    [[nodiscard]] std::string path_of(const std::string& owner_dir, std::size_t n) const override {
        return "/run/" + owner_dir + "/" + std::to_string(n) + ".sock";
    }
    Result<> link(const std::string& owner_dir, const std::vector<VfSockets>& sockets) override {
        if (is_full) return fail(ErrorId::System, "no space left on device");
        links[owner_dir] = sockets;
        return {};
    }
    void unlink(const std::string& owner_dir) override { links.erase(owner_dir); }
    void unlink_vf(const std::string& owner_dir, const VfSockets& sockets) override {
        if (links.contains(owner_dir)) std::erase(links[owner_dir], sockets);
    }
    [[nodiscard]] std::vector<std::string> linked(const std::string& owner_dir) const override {
        std::vector<std::string> targets;
        const auto at = links.find(owner_dir);
        if (at == links.end()) return targets;
        for (const VfSockets& one : at->second) targets.push_back(one.vfio_user);
        return targets;
    }
    Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) override {
        owners[sockets.vfio_user] = owners[sockets.agent] =
            std::to_string(uid) + ":" + std::to_string(gid);
        return {};
    }
    void revoke(const VfSockets& sockets) override {
        owners.erase(sockets.vfio_user);
        owners.erase(sockets.agent);
    }

    std::map<std::string, std::vector<VfSockets>> links;  ///< by owner_dir
    std::map<std::string, std::string> owners;            ///< by socket: "uid:gid"
    bool is_full = false;
};

}  // namespace vgpu::daemon::testing
