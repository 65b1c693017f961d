// SPDX-License-Identifier: MIT
//
// Claims: claims VFs in vgpud for the ResourceClaims of this host, and ends these claims. The
// kubelet calls prepare() before the first container of a pod and unprepare() after the last, and
// may repeat both calls. reconcile() ends the claims whose end the kubelet never reported.
//
//   prepare     read the claim -> write its record -> claim its VFs in vgpud -> write metadata
//               and CDI file
//   unprepare   end the claim in vgpud -> remove CDI file, metadata and record
//
// Any thread may call a Claims. One call at a time changes this host; a call that waits for the API
// server does not block other calls.
#pragma once

#include "daemon/engines/kubernetes/cdi.h"
#include "daemon/engines/kubernetes/claim_files.h"

#include <mutex>
#include <string>
#include <vector>

namespace vgpu::kubernetes {

class Claims {
public:
    struct Host {
        std::string node;     ///< name of the node, which is the pool of its devices
        std::string cluster;  ///< part of the owners in vgpud
        SocketUser user;
    };

    Claims(ApiPort& api, VgpudPort& vgpud, const PciPort& pci, ClaimFiles files, Host host)
        : api_(api), vgpud_(vgpud), pci_(pci), files_(std::move(files)), host_(std::move(host)) {}

    /// Returns the devices of the ResourceClaim, in the order of its allocation.
    Result<std::vector<PreparedDevice>> prepare(const ClaimReference& reference);
    /// Succeeds also for a ResourceClaim that was never prepared. Does not ask the API server.
    Result<> unprepare(const ClaimReference& reference);
    /// Ends each prepared claim whose ResourceClaim is gone from the API server, unless a client
    /// has one of the VFs open. An error or a timeout ends no claim. Returns a line for each claim
    /// that was ended or could not be checked or ended, and for each VF of this cluster without a
    /// record.
    std::vector<std::string> reconcile();

private:
    Result<std::vector<PreparedDevice>> with_vfs(const Claim& claim);
    Result<> assign(const Claim& claim, const std::vector<PreparedDevice>& devices);
    Result<> end(const std::string& uid);
    Result<bool> end_if_gone(const ClaimReference& reference);
    Result<bool> is_open(const std::string& owner);

    ApiPort& api_;
    VgpudPort& vgpud_;
    const PciPort& pci_;
    ClaimFiles files_;
    Host host_;
    std::mutex mutex_;
};

}  // namespace vgpu::kubernetes
