// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/allocations.h"

#include "daemon/engines/kubernetes/devices.h"
#include "daemon/engines/kubernetes/names.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::kubernetes {

namespace {

std::string owner_of_device(std::string_view cluster, const std::string& id) {
    return owner_of(cluster, "device-" + id);
}

/// The owner of the VF `target`, whose device is `id`. vgpud would not take a longer owner for that
/// of a job, and so might report the claim of a container as forgotten.
Result<std::string> checked_owner(std::string_view cluster, const std::string& id,
                                  const std::string& target) {
    std::string owner = owner_of_device(cluster, id);
    if (owner.size() <= kMaxOwner) return owner;
    return fail(ErrorId::BadConfiguration,
                fmt::format("the owner '{}' of {} would have {} bytes, but vgpud allows {}: choose "
                            "a shorter --cluster, or give the GPU a shorter id in vgpud's "
                            "configuration",
                            owner, target, owner.size(), kMaxOwner));
}

void add(ContainerEdits& all, const ContainerEdits& more) {
    all.variables.insert(more.variables.begin(), more.variables.end());
    all.mounts.insert(all.mounts.end(), more.mounts.begin(), more.mounts.end());
    for (const std::string& node : more.device_nodes)
        if (std::ranges::find(all.device_nodes, node) == all.device_nodes.end())
            all.device_nodes.push_back(node);
}

}  // namespace

Result<DevicesByProfile> plugin_devices(std::span<const HostVf> vfs, std::string_view cluster,
                                        const PciPort& pci) {
    DeviceNames names;
    DevicesByProfile devices;
    for (const HostVf& vf : vfs) {
        if (vf.profile.empty()) continue;
        TRY(const std::string id, names.take(vf.target));
        TRY(const std::string owner, checked_owner(cluster, id, vf.target));
        const bool is_own = vf.owner == owner;
        PluginDevice device{
            .id = id, .is_healthy = is_in_service(vf) && (is_own || is_free(vf)), .numa_node = {}};
        if (vf.socket.empty() && !vf.address.empty()) device.numa_node = pci.numa_node(vf.address);
        devices[vf.profile].push_back(std::move(device));
    }
    return devices;
}

/// The kubelet gives a device to a container only after the previous container with this device has
/// ended. So assign() first ends the claim of the previous container.
Result<> Allocations::assign(const std::string& id, const HostVf& vf) {
    const std::string owner = owner_of_device(cluster_, id);
    if (vf.owner == owner) {
        if (vf.is_open)
            return fail(ErrorId::WrongState,
                        fmt::format("a client of an earlier container still has {} open", id));
        TRY_VOID(vgpud_.unassign(owner));
    }
    return vgpud_.assign(owner, "device plugin", {vf.name}, user_);
}

Result<ContainerEdits> Allocations::allocate(const std::vector<std::string>& ids) {
    const std::lock_guard lock(mutex_);
    TRY(const std::vector<HostVf> vfs, vgpud_.vfs());
    ContainerEdits all;
    std::vector<std::string> given;
    const auto undo = [this, &given](Error error) {
        for (const std::string& id : given)
            static_cast<void>(vgpud_.unassign(owner_of_device(cluster_, id)));
        return tl::make_unexpected(std::move(error));
    };
    for (const std::string& id : ids) {
        const auto vf = std::ranges::find(
            vfs, id, [](const HostVf& one) { return device_name_of(one.target); });
        if (vf == vfs.end())
            return undo({ErrorId::NoSuchVf, fmt::format("this host has no device {}", id)});
        auto edits = edits_of(id, *vf, pci_);
        if (!edits) return undo(std::move(edits).error());
        if (auto done = assign(id, *vf); !done) return undo(std::move(done).error());
        given.push_back(id);
        add(all, *edits);
    }
    return all;
}

}  // namespace vgpu::kubernetes
