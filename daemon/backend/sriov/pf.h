// SPDX-License-Identifier: MIT
//
// SriovPf: any SR-IOV PF whose driver is not ours, through the PCI core's sysfs files. It can read
// the VFs and who uses them, choose the driver of a VF, reset a VF, and change the number of VFs by
// a re-enable. What other VFs must do is part of every contract here:
//
//   one VF     bind, reset        only while that VF is closed
//   all VFs    set_count          only while every VF is closed: all of them disappear
//
// "Closed" is one read of the VF's file `enable`, the number of times that a driver has enabled the
// function: 0 while vfio-pci or a variant is bound and nobody has it open. The test has no side
// effect and needs no capability. A VM may open the VF between test and act, so a VF without any
// driver is what vgpud resets or disables: unbind, look again, act.
//
// Every step is absolute ("4 VFs"), so that a later vgpud can repeat it. GPU thread only.
#pragma once

#include "daemon/backend/sriov/sysfs.h"
#include "daemon/ports/assignment_port.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::sriov {

/// What identifies a card without a capability: its serial number needs CAP_SYS_ADMIN.
struct PciIds {
    std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    std::uint8_t revision = 0;

    bool operator==(const PciIds&) const = default;
};
/// "8086:e212 (subsystem 8086:1114, revision 00)"
[[nodiscard]] std::string describe(const PciIds& ids);

/// Who uses a VF. Unknown counts as open everywhere.
enum class VfUse {
    Closed,
    Open,  ///< by vfio: a VM has it
    Host,  ///< a driver of the host has it
    Unknown,
};

struct VfFunction {
    std::uint32_t vf = 0;  ///< 1 …
    std::string address;   ///< "0000:03:00.1"
    std::string driver;    ///< bound to it; empty: none
    VfUse use = VfUse::Unknown;
    std::string reason;  ///< why `use` is Unknown

    bool operator==(const VfFunction&) const = default;
};

struct PfFunction {
    std::string driver;  ///< empty: none
    PciIds ids{};
    std::uint32_t total_vfs = 0;
    bool is_autoprobing = false;    ///< new VFs get a driver of the host
    std::vector<VfFunction> vfs{};  ///< enabled, by number

    [[nodiscard]] const VfFunction* find(std::uint32_t vf) const;
    bool operator==(const PfFunction&) const = default;
};

/// The PF as it was when vgpud took it over. Writes are refused while the card or the driver is
/// another.
struct PfIdentity {
    std::string address;
    PciIds ids{};
    std::string driver;
};

/// What a PF driver adds to a re-enable; the generic one adds nothing.
class EnableSteps {
public:
    virtual ~EnableSteps() = default;
    /// All VFs are disabled, and `count` are about to be enabled.
    virtual Result<> before_enable(std::uint32_t /*count*/) { return {}; }
    /// `count` VFs are enabled, and none has a driver.
    virtual Result<> after_enable(std::uint32_t /*count*/) { return {}; }
};

/// Whether bind() may take a VF from a driver of the host. An open VF is never taken.
enum class TakeFromHost { No, Yes };

class SriovPf {
public:
    SriovPf(Sysfs& files, PfIdentity identity) : files_(files), identity_(std::move(identity)) {}

    [[nodiscard]] const std::string& address() const { return identity_.address; }
    [[nodiscard]] const PfIdentity& identity() const { return identity_; }

    // --- reads only (inspect.cpp)
    /// Of the PF at `address`. Does not wait: counts links, never reads sriov_numvfs. VFs that
    /// vanish meanwhile are left out.
    static Result<PfFunction> inspect(Sysfs& files, const std::string& address);
    Result<PfFunction> inspect() { return inspect(files_, address()); }
    /// One VF; none if it is not enabled.
    Result<std::optional<VfFunction>> inspect(std::uint32_t vf);
    /// PfLost unless card and driver are those of `identity`.
    Result<> check_identity();
    /// The driver through which VMs get VFs of this PF: the variant of its PF driver if that is
    /// loaded, else vfio-pci. AssignmentRefused if neither is: vgpud loads no module.
    Result<std::string> vfio_driver();

    // --- one VF (binding.cpp)
    /// Gives the VF's function to `mode`: None, VfioPci or Host. A VF that changes its user is
    /// reset between the two. VfsInUse if it is open; AssignmentRefused without such a driver.
    Result<> bind(std::uint32_t vf, AssignmentMode mode, TakeFromHost take = TakeFromHost::No);
    /// Resets a closed VF (FLR) while it has no driver, after `change`, if any; its driver is bound
    /// again. If vgpud dies in between, the VF has no driver, and the next bind() resets it.
    Result<> reset(std::uint32_t vf, const std::function<Result<>()>& change = {});

    // --- all VFs (vf_count.cpp)
    /// Refuses with VfsInUse and the VFs in use. No write.
    Result<> check_all_closed();
    /// Makes the PF have `count` VFs without drivers. If it has another number > 0: disables all
    /// and enables `count`. VfsInUse, before the first write, if any VF is in use; a VF that is
    /// opened during the unbinding ends it, and the drivers of the others are bound again.
    Result<> set_count(std::uint32_t count, EnableSteps& steps);

private:
    Result<VfFunction> find(std::uint32_t vf);
    Result<> unbind(const VfFunction& vf, TakeFromHost take);
    Result<> probe(const VfFunction& vf, const std::string& driver);
    Result<> probe_host_driver(const VfFunction& vf);
    Result<> reset_unbound(const VfFunction& vf);
    Result<> write_autoprobe(bool is_on);
    Result<> disable_all(const PfFunction& facts);
    Result<> unbind_all(const PfFunction& facts);
    Result<> write_count(std::uint32_t count);
    [[nodiscard]] std::string pf_path(std::string_view file) const {
        return device_path(address(), file);
    }

    Sysfs& files_;
    const PfIdentity identity_;
};

/// "vfio-pci", "xe-vfio-pci", "mlx5_vfio_pci" … : drivers through which a VM opens a function.
[[nodiscard]] bool is_vfio_driver(std::string_view driver);

/// None, VfioPci or Host, by the driver that is bound.
[[nodiscard]] AssignmentMode mode_of(const VfFunction& vf);

/// "vf2 (0000:03:00.2) is open through vfio-pci"
[[nodiscard]] std::string describe_use(const VfFunction& vf);

}  // namespace vgpu::daemon::sriov
