// SPDX-License-Identifier: MIT
//
// VmSocketsPort: gives an owner the sockets of its VFs at paths that are known before VFs are
// chosen. RUN_DIR/OWNER_DIR/N.sock and N.agent.sock lead to the sockets of one VF of the owner; N
// counts the owner's VFs from 0. RUN_DIR is vgpud's run directory. Also changes the user and the
// group of sockets. Implemented by adapters/vm_sockets, faked in tests. Used in the main loop only.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Paths of a VF's two sockets; empty if there is no such socket.
struct VfSockets {
    std::string vfio_user;
    std::string agent;

    bool operator==(const VfSockets&) const = default;
};

/// `owner_dir` is the directory of an owner: "vm/UUID" (lower case) for a domain, "owner/NAME" for
/// one start of a job, such as "owner/slurm:lab:17.0". N is the VF's index in the `sockets` of
/// link().
class VmSocketsPort {
public:
    virtual ~VmSocketsPort() = default;

    /// RUN_DIR/OWNER_DIR/N.sock, whether it exists or not.
    [[nodiscard]] virtual std::string path_of(const std::string& owner_dir,
                                              std::size_t n) const = 0;
    /// Replaces all paths of `owner_dir`. Fails with System if a VF's vfio-user socket does not
    /// exist or a path cannot be made; with OutOfRange if a path is too long for a socket. Paths
    /// made before the failure stay until the next link() or unlink().
    virtual Result<> link(const std::string& owner_dir, const std::vector<VfSockets>& sockets) = 0;
    /// Removes all paths of `owner_dir`.
    virtual void unlink(const std::string& owner_dir) = 0;
    /// Removes the paths of `owner_dir` that lead to `sockets`; other paths stay.
    virtual void unlink_vf(const std::string& owner_dir, const VfSockets& sockets) = 0;
    /// Targets of the paths N.sock of `owner_dir`, in the order of N; empty if there are no paths.
    [[nodiscard]] virtual std::vector<std::string> linked(const std::string& owner_dir) const = 0;
    /// Gives the sockets to the user `uid` and the group `gid`; open connections stay. Skips an
    /// empty path in `sockets`. Fails with System.
    virtual Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Gives the sockets back to vgpud's user and group. Ignores failures.
    virtual void revoke(const VfSockets& sockets) = 0;
};

}  // namespace vgpu::daemon
