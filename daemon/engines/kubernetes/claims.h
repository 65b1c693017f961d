// SPDX-License-Identifier: MIT
//
// Claims: claims VFs in vgpud for the ResourceClaims of this host, and ends these claims. The
// kubelet requests prepare() before the containers of a pod with the ResourceClaim start, and
// unprepare() after the last such pod has ended. The kubelet may repeat both requests. If a
// ResourceClaim is gone and the kubelet never requested unprepare(), reconcile() ends the claim.
//
//   prepare     read the ResourceClaim -> write its record -> claim its VFs in vgpud -> write
//               metadata and CDI file
//   unprepare   end the claim in vgpud -> remove CDI file, metadata and record
//
// Thread-safe: a mutex lets only one call at a time change this host. No call holds the mutex while
// it waits for the API server.
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
        std::string node;     ///< name of this host in Kubernetes, and of the pool of its devices
        std::string cluster;  ///< name of the cluster in the owners: k8s:CLUSTER:UID.0
        SocketUser user;      ///< who may open the sockets of the claimed VFs
    };

    Claims(ApiPort& api, VgpudPort& vgpud, const PciPort& pci, ClaimFiles files, Host host)
        : api_(api), vgpud_(vgpud), pci_(pci), files_(std::move(files)), host_(std::move(host)) {}

    /// Claims the VFs of the ResourceClaim. Returns its devices, in the order of its allocation. A
    /// repeated call returns the same. Errors are those of check_reference(), claim_in(),
    /// cdi_spec(), ClaimFiles and the ports, and NoSuchVf if this host lacks a device of the
    /// ResourceClaim.
    Result<std::vector<PreparedDevice>> prepare(const ClaimReference& reference);
    /// Ends the claim and removes its files. Succeeds also for a ResourceClaim that was never
    /// prepared. Does not ask the API server.
    Result<> unprepare(const ClaimReference& reference);
    /// Ends the claim of each ResourceClaim on record that is gone from the API server, unless a
    /// client has one of the VFs open. After an error or a timeout, the claim stays. Returns lines
    /// for the log: one for each claim that was ended, or could not be checked or ended; and one
    /// for each VF that this cluster owns without a record.
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
