// SPDX-License-Identifier: MIT
//
// VmSocketsPort: where a virtual machine finds the sockets of the VFs it was given, at paths that
// are known before a VF is chosen: DIRECTORY/UUID/N.sock and N.agent.sock lead to the N-th VF's
// sockets. And who may open these. Implemented by adapters/vm_sockets, faked in tests; main loop
// only.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// The sockets of one VF; empty: there is none.
struct VfSockets {
    std::string vfio_user;
    std::string agent;

    bool operator==(const VfSockets&) const = default;
};

/// `uuid` is a domain's, in lower case. N counts from 0, in the order of `sockets`.
class VmSocketsPort {
public:
    virtual ~VmSocketsPort() = default;

    /// The path under which `uuid` finds its N-th VF.
    [[nodiscard]] virtual std::string path_of(const std::string& uuid, std::size_t n) const = 0;
    /// In place of what `uuid` had.
    /// System if a VF's socket is not there, or a link cannot be made; the ones before it stay,
    /// until the next link() or unlink().
    virtual Result<> link(const std::string& uuid, const std::vector<VfSockets>& sockets) = 0;
    virtual void unlink(const std::string& uuid) = 0;
    /// No path of `uuid` leads to these any more; its others stay.
    virtual void unlink_vf(const std::string& uuid, const VfSockets& sockets) = 0;
    /// Where the paths of `uuid` lead, in the order of N; empty if it has none.
    [[nodiscard]] virtual std::vector<std::string> linked(const std::string& uuid) const = 0;
    /// Only `uid` and `gid` may open these.
    /// System if that fails; a socket that is empty in `sockets` is passed over. Takes effect for
    /// those who open it from then on.
    virtual Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Nobody but vgpud's own user may open these.
    virtual void revoke(const VfSockets& sockets) = 0;
};

}  // namespace vgpu::daemon
