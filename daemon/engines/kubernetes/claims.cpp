// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/claims.h"

#include "daemon/engines/kubernetes/names.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace vgpu::kubernetes {

/// The devices of the claim with their VFs. NoSuchVf if this host lacks one of the devices.
Result<std::vector<PreparedDevice>> Claims::with_vfs(const Claim& claim) {
    TRY(const std::vector<HostVf> vfs, vgpud_.vfs());
    std::vector<PreparedDevice> devices;
    for (const AllocatedDevice& allocated : claim.devices) {
        const auto vf = std::ranges::find(
            vfs, allocated.device, [](const HostVf& one) { return device_name_of(one.target); });
        if (vf == vfs.end())
            return fail(ErrorId::NoSuchVf,
                        fmt::format("ResourceClaim {}: this host has no device {} (any more)",
                                    text_of(claim.reference), allocated.device));
        devices.push_back({.allocated = allocated, .vf = *vf});
    }
    return devices;
}

/// Writes the record before it claims the VFs, because reconcile() finds claims by their records.
Result<> Claims::assign(const Claim& claim, const std::vector<PreparedDevice>& devices) {
    const std::string& uid = claim.reference.uid;
    std::vector<std::string> names;
    for (const PreparedDevice& device : devices) names.push_back(device.vf.name);
    const auto metadata = metadata_of(claim, devices, host_.node, pci_);
    TRY(const auto spec, cdi_spec(claim, devices, files_.metadata_files(uid, metadata), pci_));
    TRY_VOID(files_.write_record(claim.reference));
    TRY_VOID(
        vgpud_.assign(owner_of(host_.cluster, uid), text_of(claim.reference), names, host_.user));
    TRY_VOID(files_.write_metadata(uid, metadata));
    return files_.write_cdi(uid, spec);
}

Result<std::vector<PreparedDevice>> Claims::prepare(const ClaimReference& reference) {
    TRY_VOID(check_reference(reference));
    TRY(const Response response, api_.call(Method::Get, path_of(reference), ""));
    TRY(const Claim claim, claim_in(response, reference, host_.node));
    const std::lock_guard lock(mutex_);
    TRY(auto devices, with_vfs(claim));
    TRY_VOID(assign(claim, devices));
    return devices;
}

Result<> Claims::end(const std::string& uid) {
    TRY_VOID(vgpud_.unassign(owner_of(host_.cluster, uid)));
    return files_.remove(uid);
}

Result<> Claims::unprepare(const ClaimReference& reference) {
    TRY_VOID(check_reference(reference));
    const std::lock_guard lock(mutex_);
    return end(reference.uid);
}

Result<bool> Claims::is_open(const std::string& owner) {
    TRY(const std::vector<HostVf> vfs, vgpud_.vfs());
    return std::ranges::any_of(
        vfs, [&owner](const HostVf& vf) { return vf.owner == owner && vf.is_open; });
}

/// Ends the claim if its ResourceClaim is gone. Returns true if the claim was ended. The claim
/// stays while one of its VFs is open, because a pod that was deleted by force may still run on
/// this host.
Result<bool> Claims::end_if_gone(const ClaimReference& reference) {
    TRY(const Response response, api_.call(Method::Get, path_of(reference), ""));
    const Existence existence = existence_in(response, reference);
    if (existence == Existence::Unknown)
        return fail(ErrorId::System,
                    fmt::format("the API server does not say whether {} exists ({})",
                                text_of(reference), refusal_text(response)));
    if (existence == Existence::Exists) return false;
    const std::lock_guard lock(mutex_);
    TRY(const bool in_use, is_open(owner_of(host_.cluster, reference.uid)));
    if (in_use) return false;
    TRY_VOID(end(reference.uid));
    return true;
}

/// Reads the VFs before the records. prepare() writes the record before it claims the VFs. So if
/// reconcile() has read a VF as claimed by a concurrent prepare(), it also finds the record.
std::vector<std::string> Claims::reconcile() {
    std::vector<std::string> log;
    std::set<std::string> recorded;
    const std::vector<HostVf> vfs = vgpud_.vfs().value_or(std::vector<HostVf>{});
    for (const ClaimReference& reference : files_.records()) {
        recorded.insert(reference.uid);
        const auto ended = end_if_gone(reference);
        if (!ended)
            log.push_back(ended.error().cause);
        else if (*ended)
            log.push_back(fmt::format("ended the claim of {} (uid {}): the ResourceClaim is gone",
                                      text_of(reference), reference.uid));
    }
    for (const HostVf& vf : vfs) {
        const auto uid = uid_of(vf.owner, host_.cluster);
        if (uid && !recorded.contains(*uid))
            log.push_back(
                fmt::format("{} belongs to '{}', which has no record on this host: its "
                            "claim stays until an administrator ends it",
                            vf.target, vf.owner));
    }
    return log;
}

}  // namespace vgpu::kubernetes
