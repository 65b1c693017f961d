// SPDX-License-Identifier: MIT
//
// SriovPf: reads the PF, its VFs and their users. Writes nothing.
#include "daemon/backend/sriov/discovery.h"
#include "daemon/backend/sriov/pf.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <limits>

namespace vgpu::daemon::sriov {

namespace {

constexpr std::string_view kVfLink = "virtfn";

template <typename T>
Result<T> read_id(Sysfs& files, const std::string& address, const char* file) {
    TRY(const std::uint64_t value,
        read_number(files, device_path(address, file), std::numeric_limits<T>::max()));
    return static_cast<T>(value);
}

/// The driver's name; empty if there is no driver.
Result<std::string> driver_of(Sysfs& files, const std::string& address) {
    auto driver = files.link(device_path(address, "driver"));
    if (driver) return *std::move(driver);
    if (driver.error().code == ENOENT) return std::string();
    return tl::make_unexpected(error_of(driver.error()));
}

/// Fills in use, vgpu_type and reason of a VF that has NVIDIA's driver. If the VF has no file
/// kVgpuType, the driver is NVIDIA's usual driver, which gives no VFs to VMs.
void inspect_vgpu(Sysfs& files, VfFunction& vf) {
    const std::string path = device_path(vf.address, kVgpuType);
    vf.use = VfUse::Host;
    if (!files.has(path)) return;
    const auto type = read_number(files, path, std::numeric_limits<std::uint32_t>::max());
    vf.use = type && *type == 0 ? VfUse::Closed : VfUse::Unknown;
    if (type)
        vf.vgpu_type = std::to_string(*type);
    else
        vf.reason = type.error().cause;
}

/// Fills in driver, use, vgpu_type and reason. False if the VF has vanished.
bool inspect(Sysfs& files, VfFunction& vf) {
    const auto driver = driver_of(files, vf.address);
    if (!driver) {
        vf.reason = driver.error().cause;
        return true;
    }
    vf.driver = *driver;
    const std::string path = device_path(vf.address, "enable");
    const auto text = files.read(path);
    if (!text && (text.error().code == ENOENT || text.error().code == ENODEV)) return false;
    const auto enabled = checked(text).and_then(
        [&](const std::string& content) { return parse_number(path, content); });
    if (!enabled)
        vf.reason = enabled.error().cause;
    else if (keeps_its_vfs(*driver))
        inspect_vgpu(files, vf);
    else if (!driver->empty() && !is_vfio_driver(*driver))
        vf.use = VfUse::Host;
    else
        vf.use = *enabled == 0 ? VfUse::Closed : VfUse::Open;
    return true;
}

/// The VF's number for the link "virtfn3": 4, because links count from 0. None for other names.
std::optional<std::uint32_t> vf_of_link(std::string_view name) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint16_t>::max();
    if (!name.starts_with(kVfLink)) return {};
    const auto index = parse_number("", name.substr(kVfLink.size()), kMax);
    if (!index) return {};
    return static_cast<std::uint32_t>(*index) + 1;
}

Result<std::vector<VfFunction>> inspect_vfs(Sysfs& files, const std::string& address) {
    TRY(const auto names, checked(files.list(device_path(address))));
    std::vector<VfFunction> vfs;
    for (const std::string& name : names) {
        const auto number = vf_of_link(name);
        if (!number) continue;
        const auto target = files.link(device_path(address, name));
        if (!target) continue;
        VfFunction vf{.vf = *number, .address = *target, .driver = {}, .reason = {}};
        if (inspect(files, vf)) vfs.push_back(std::move(vf));
    }
    std::sort(vfs.begin(), vfs.end(), [](const auto& a, const auto& b) { return a.vf < b.vf; });
    return vfs;
}

/// "i915-vfio-pci" for "i915_vfio_pci": names of drivers in the kernel use both spellings.
std::string with_dashes(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), '_', '-');
    return out;
}

}  // namespace

bool is_vfio_driver(std::string_view driver) {
    return with_dashes(driver).ends_with("vfio-pci");
}

std::string describe(const PciIds& ids) {
    return fmt::format("{:04x}:{:04x} (subsystem {:04x}:{:04x}, revision {:02x})", ids.vendor,
                       ids.device, ids.subsystem_vendor, ids.subsystem_device, ids.revision);
}

std::string describe_use(const VfFunction& vf) {
    const std::string name = fmt::format("vf{} ({})", vf.vf, vf.address);
    switch (vf.use) {
        case VfUse::Closed:
            return name + " is closed";
        case VfUse::Open:
            return vf.driver.empty() ? name + " is enabled by another program, without a driver"
                                     : fmt::format("{} is open through {}", name, vf.driver);
        case VfUse::Host:
            return fmt::format("{} is used by the host's driver {}", name, vf.driver);
        case VfUse::Unknown:
            break;
    }
    if (!vf.vgpu_type.empty())
        return fmt::format("{} may be open: it has NVIDIA's vGPU type {}", name, vf.vgpu_type);
    return fmt::format("{} cannot be inspected ({})", name, vf.reason);
}

const VfFunction* PfFunction::find(std::uint32_t vf) const {
    const auto found =
        std::find_if(vfs.begin(), vfs.end(), [vf](const auto& one) { return one.vf == vf; });
    return found == vfs.end() ? nullptr : &*found;
}

Result<PfIdentity> SriovPf::identify(Sysfs& files, const std::string& address) {
    if (!files.has(device_path(address)))
        return fail(ErrorId::PfLost,
                    fmt::format("there is no PCI function {}; it was removed, or the address in "
                                "vgpud's configuration is wrong",
                                address));
    PfIdentity found;
    found.address = address;
    TRY(found.driver, driver_of(files, address));
    TRY(found.ids.vendor, read_id<std::uint16_t>(files, address, "vendor"));
    TRY(found.ids.device, read_id<std::uint16_t>(files, address, "device"));
    TRY(found.ids.subsystem_vendor, read_id<std::uint16_t>(files, address, "subsystem_vendor"));
    TRY(found.ids.subsystem_device, read_id<std::uint16_t>(files, address, "subsystem_device"));
    TRY(found.ids.revision, read_id<std::uint8_t>(files, address, "revision"));
    return found;
}

Result<PfFunction> SriovPf::inspect(Sysfs& files, const std::string& address) {
    TRY(const PfIdentity found, identify(files, address));
    PfFunction facts;
    facts.driver = found.driver;
    facts.ids = found.ids;
    TRY(facts.total_vfs, read_id<std::uint16_t>(files, address, "sriov_totalvfs"));
    TRY(const auto autoprobe, read_id<std::uint8_t>(files, address, "sriov_drivers_autoprobe"));
    facts.is_autoprobing = autoprobe != 0;
    TRY(facts.vfs, inspect_vfs(files, address));
    return facts;
}

Result<PfFunction> SriovPf::inspect() {
    TRY(PfFunction facts, inspect(files_, address()));
    TRY_VOID(check_identity({.address = address(), .ids = facts.ids, .driver = facts.driver}));
    return facts;
}

Result<std::optional<VfFunction>> SriovPf::inspect(std::uint32_t vf) {
    std::optional<VfFunction> none;
    if (vf == 0) return none;
    const auto target = files_.link(pf_path(fmt::format("{}{}", kVfLink, vf - 1)));
    if (!target && target.error().code == ENOENT) return none;
    if (!target) return tl::make_unexpected(error_of(target.error()));
    VfFunction found{.vf = vf, .address = *target, .driver = {}, .reason = {}};
    return sriov::inspect(files_, found) ? std::optional(found) : none;
}

Result<> SriovPf::check_identity() {
    TRY(const PfIdentity now, identify(files_, address()));
    return check_identity(now);
}

Result<> SriovPf::check_identity(const PfIdentity& now) const {
    if (now.ids != identity_.ids)
        return fail(ErrorId::PfLost,
                    fmt::format("{} is now another card, {}; the one on record is {}. Nothing was "
                                "written",
                                address(), describe(now.ids), describe(identity_.ids)));
    if (now.driver != identity_.driver)
        return fail(
            ErrorId::PfLost,
            fmt::format("the driver of {} is now {}; it was {} when vgpud took the GPU "
                        "over. Nothing was written",
                        address(), now.driver.empty() ? "none" : now.driver, identity_.driver));
    return {};
}

}  // namespace vgpu::daemon::sriov
