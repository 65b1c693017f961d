// SPDX-License-Identifier: MIT
//
// SriovPf: changes the driver of one VF, and resets the VF. If `driver_override` of a device names
// a driver, the PCI core binds the device only to that driver. A write of the device's address to
// `drivers_probe` binds the device. In mode None, a VF has no override and gets no driver, because
// sriov_drivers_autoprobe is 0.
#include "daemon/backend/sriov/pf.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::daemon::sriov {

namespace {

constexpr std::string_view kVfio = "vfio-pci", kProbe = "/sys/bus/pci/drivers_probe";
/// An empty line removes the override.
constexpr std::string_view kNoOverride = "\n";

struct Variant {
    std::string_view pf_driver, vfio_driver;
};
/// Variants of vfio-pci (Linux drivers/vfio/pci). After a reset of a VF, a variant waits until the
/// PF driver has done its part of the reset.
constexpr std::array kVariants{Variant{"xe", "xe-vfio-pci"}};

tl::unexpected<Error> in_use(const VfFunction& vf) {
    std::string cause = describe_use(vf);
    if (vf.use == VfUse::Host)
        cause +=
            fmt::format("; unbind it (echo {} > {}/unbind)", vf.address, driver_path(vf.driver));
    return fail(ErrorId::VfsInUse, cause);
}

bool may_take(const VfFunction& vf, TakeFromHost take) {
    return vf.use == VfUse::Closed || (vf.use == VfUse::Host && take == TakeFromHost::Yes);
}

}  // namespace

AssignmentMode mode_of(const VfFunction& vf) {
    if (vf.driver.empty()) return AssignmentMode::None;
    const bool is_for_vms = is_vfio_driver(vf.driver) || !vf.vgpu_type.empty();
    return is_for_vms ? AssignmentMode::VfioPci : AssignmentMode::Host;
}

Result<VfFunction> SriovPf::find(std::uint32_t vf) {
    TRY(const auto found, inspect(vf));
    if (found) return *found;
    return fail(ErrorId::NoSuchVf, fmt::format("{} has no vf{}: it is not enabled", address(), vf));
}

Result<std::string> SriovPf::vfio_driver() {
    for (const Variant& row : kVariants)
        if (row.pf_driver == identity_.driver && files_.has(driver_path(row.vfio_driver)))
            return std::string(row.vfio_driver);
    if (files_.has(driver_path(kVfio))) return std::string(kVfio);
    return fail(ErrorId::AssignmentRefused,
                "the driver vfio-pci is not loaded, and vgpud loads no modules; load it by "
                "modprobe, and at boot by a line 'vfio-pci' in /etc/modules-load.d/vfio.conf");
}

Result<> SriovPf::bind(std::uint32_t vf, AssignmentMode mode, TakeFromHost take) {
    TRY_VOID(check_identity());
    TRY(const VfFunction before, find(vf));
    if (mode == AssignmentMode::Default)
        mode = before.vgpu_type.empty() ? AssignmentMode::None : mode_of(before);
    if (mode_of(before) == mode) return {};
    if (!before.vgpu_type.empty())
        return fail(ErrorId::AssignmentRefused,
                    fmt::format("NVIDIA's driver gives vf{} ({}) to VMs itself, and must keep it; "
                                "only 'vfio-pci' is possible",
                                vf, before.address));
    if (!may_take(before, take)) return in_use(before);
    std::string driver;
    if (mode == AssignmentMode::VfioPci) {
        TRY(driver, vfio_driver());
    }
    TRY_VOID(write_autoprobe(false));
    TRY_VOID(unbind(before, take));
    TRY_VOID(reset_unbound(before));
    if (mode == AssignmentMode::VfioPci) return probe(before, driver);
    return mode == AssignmentMode::Host ? probe_host_driver(before) : Result<>();
}

Result<> SriovPf::reset(std::uint32_t vf, const std::function<Result<>()>& change) {
    TRY_VOID(check_identity());
    TRY(const VfFunction before, find(vf));
    if (!before.vgpu_type.empty())
        return fail(ErrorId::NotOffered,
                    fmt::format("vgpud cannot reset vf{} ({}): NVIDIA's driver must keep it, and "
                                "clears it itself when it gets a vGPU type",
                                vf, before.address));
    if (before.use != VfUse::Closed) return in_use(before);
    TRY_VOID(unbind(before, TakeFromHost::No));
    const Result<> changed = change ? change() : Result<>();
    if (changed) TRY_VOID(reset_unbound(before));
    if (!before.driver.empty()) TRY_VOID(probe(before, before.driver));
    return changed;
}

/// If a VM has the VF open, an unbind blocks, and the kernel asks QEMU to unplug the device. So
/// vgpud reads the VF's use immediately before the unbind. Another program may take the VF during
/// the unbind, so vgpud also reads the use afterwards. Does nothing for a VF without a driver.
Result<> SriovPf::unbind(const VfFunction& vf, TakeFromHost take) {
    if (vf.driver.empty()) return {};
    TRY(const VfFunction now, find(vf.vf));
    if (!may_take(now, take)) return in_use(now);
    TRY_VOID(checked(files_.write(device_path(vf.address, "driver_override"), kNoOverride)));
    if (!now.driver.empty())
        TRY_VOID(checked(files_.write(driver_path(now.driver) + "/unbind", vf.address)));
    TRY(const VfFunction after, find(vf.vf));
    if (after.use == VfUse::Closed && after.driver.empty()) return {};
    return fail(ErrorId::VfsInUse,
                fmt::format("another program took vf{} while vgpud unbound it: {}", vf.vf,
                            describe_use(after)));
}

Result<> SriovPf::probe(const VfFunction& vf, const std::string& driver) {
    TRY_VOID(checked(files_.write(device_path(vf.address, "driver_override"), driver)));
    TRY_VOID(checked(files_.write(std::string(kProbe), vf.address)));
    TRY(const VfFunction now, find(vf.vf));
    if (now.driver == driver) return {};
    return fail(ErrorId::AssignmentRefused,
                fmt::format("{} did not take vf{} ({}); its driver is {}. Without an IOMMU in "
                            "front of the GPU vfio-pci refuses; the kernel's log says why",
                            driver, vf.vf, vf.address, now.driver.empty() ? "none" : now.driver));
}

/// Switches autoprobe on for a moment, because host drivers bind to VFs only while it is on. Other
/// VFs get no driver, because a write to drivers_probe binds only the VF that the write names. An
/// override that another program left would keep the host's driver away; unbind() removes it only
/// from a VF with a driver.
Result<> SriovPf::probe_host_driver(const VfFunction& vf) {
    if (vf.driver.empty())
        TRY_VOID(checked(files_.write(device_path(vf.address, "driver_override"), kNoOverride)));
    TRY_VOID(write_autoprobe(true));
    const auto probed = files_.write(std::string(kProbe), vf.address);
    TRY_VOID(write_autoprobe(false));
    TRY_VOID(checked(probed));
    TRY(const VfFunction now, find(vf.vf));
    if (!now.driver.empty()) return {};
    return fail(ErrorId::AssignmentRefused,
                fmt::format("no driver of this host took vf{} ({}); load the one for this device",
                            vf.vf, vf.address));
}

Result<> SriovPf::reset_unbound(const VfFunction& vf) {
    TRY(const std::string methods, checked(files_.read(device_path(vf.address, "reset_method"))));
    if (methods.find("flr") == std::string::npos)
        return fail(
            ErrorId::PfRefused,
            fmt::format("vf{} ({}) has no function level reset ({} reads '{}'), so its "
                        "next user could read the data of its last user",
                        vf.vf, vf.address, device_path(vf.address, "reset_method"), methods));
    return checked(files_.write(device_path(vf.address, "reset"), "1"));
}

Result<> SriovPf::write_autoprobe(bool is_on) {
    const std::string path = pf_path("sriov_drivers_autoprobe");
    TRY(const auto now, read_number(files_, path, 1));
    if ((now != 0) == is_on) return {};
    return checked(files_.write(path, is_on ? "1" : "0"));
}

}  // namespace vgpu::daemon::sriov
