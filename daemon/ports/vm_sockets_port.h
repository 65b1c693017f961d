// SPDX-License-Identifier: MIT
//
// VmSocketsPort: gives an owner the sockets of its VFs at paths that are known before VFs are
// chosen. RUN_DIR/PLACE/N.sock and N.agent.sock lead to the sockets of the N-th VF. Also sets which
// users may open the sockets. Implemented by adapters/vm_sockets, faked in tests; main loop only.
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

/// `place` is that of an owner: "vm/UUID" (lower case) of a domain, "owner/NAME" of a life of a
/// job. N counts from 0, in the order of `sockets`.
class VmSocketsPort {
public:
    virtual ~VmSocketsPort() = default;

    [[nodiscard]] virtual std::string path_of(const std::string& place, std::size_t n) const = 0;
    /// Replaces all paths of `place`. System if a VF's socket does not exist or a link cannot be
    /// made. Links made before the failure stay until the next link() or unlink().
    virtual Result<> link(const std::string& place, const std::vector<VfSockets>& sockets) = 0;
    virtual void unlink(const std::string& place) = 0;
    /// Removes the paths of `place` that lead to `sockets`; its other paths stay.
    virtual void unlink_vf(const std::string& place, const VfSockets& sockets) = 0;
    /// Targets of the paths of `place`, in the order of N; empty if it has no paths.
    [[nodiscard]] virtual std::vector<std::string> linked(const std::string& place) const = 0;
    /// From now on only `uid` and `gid` may open the sockets; open connections stay. System on
    /// failure. An empty path in `sockets` is skipped.
    virtual Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) = 0;
    /// From now on only vgpud's user may open the sockets.
    virtual void revoke(const VfSockets& sockets) = 0;
};

}  // namespace vgpu::daemon
