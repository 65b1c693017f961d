// SPDX-License-Identifier: MIT
//
// VmSocketsPort gives a virtual machine the sockets of its VFs at paths that are known before a VF
// is chosen: DIRECTORY/UUID/N.sock and N.agent.sock lead to the sockets of the N-th VF. It also
// sets who may open them. Implemented by adapters/vm_sockets, faked in tests; main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::daemon {

struct VfSockets {
    std::string vfio_user;
    std::string agent;

    bool operator==(const VfSockets&) const = default;
};

/// `uuid` is that of a domain, in lower case. N counts from 0, in the order of `sockets`.
class VmSocketsPort {
public:
    virtual ~VmSocketsPort() = default;

    [[nodiscard]] virtual std::string path_of(const std::string& uuid, std::size_t n) const = 0;
    /// Replaces all paths of `uuid`.
    /// System if a VF's socket does not exist or a link cannot be made; earlier links stay until
    /// the next link() or unlink().
    virtual Result<> link(const std::string& uuid, const std::vector<VfSockets>& sockets) = 0;
    virtual void unlink(const std::string& uuid) = 0;
    /// Removes the paths of `uuid` that lead to `sockets`; its others stay.
    virtual void unlink_vf(const std::string& uuid, const VfSockets& sockets) = 0;
    /// Targets of the paths of `uuid`, in the order of N; empty if it has none.
    [[nodiscard]] virtual std::vector<std::string> linked(const std::string& uuid) const = 0;
    /// Lets only `uid` and `gid` open the sockets from now on; open connections stay.
    /// System on failure; an empty path in `sockets` is skipped.
    virtual Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Lets only vgpud's user open the sockets.
    virtual void revoke(const VfSockets& sockets) = 0;
};

}  // namespace vgpu::daemon
