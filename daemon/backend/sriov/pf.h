// SPDX-License-Identifier: MIT
//
// SriovPf: controls any SR-IOV PF with a vendor's driver, through the PCI core's sysfs files.
// SriovPf reads the VFs and their users, binds a VF to a driver, resets a VF, and changes the
// number of VFs by disabling and enabling all. Each operation requires VFs to be closed:
//
//   one VF     reset              only while that VF is closed
//   one VF     bind               only while that VF is closed, or, with TakeFromHost::Yes, has a
//                                 driver of the host
//   all VFs    set_count          only while every VF is closed, because all VFs disappear
//
// A VF is closed if its driver is none, vfio-pci or a variant of vfio-pci, and its file `enable`
// reads 0. The file shows the kernel's enable count of the function (pci_dev.enable_cnt). While
// vfio-pci or a variant is bound, this count is 0 if no VM has the VF open. Reading the file has no
// side effect and needs no capability. A VM may open the VF between the read and the operation, so
// vgpud unbinds the VF's driver and reads the use again before it resets or disables the VF.
//
// NVIDIA's driver gives its VFs to VMs itself, so vgpud never unbinds or resets them. A VM can open
// such a VF only if the VF has a vGPU type (file nvidia/current_vgpu_type). No file shows whether a
// VM has the VF open, so a VF with a type counts as in use.
//
// Every write has an absolute value ("4 VFs"), so that a restarted vgpud can repeat the write. Only
// the GPU's thread calls this class.
#pragma once

#include "daemon/backend/sriov/sysfs.h"
#include "daemon/ports/assignment_port.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::sriov {

/// The ids by which vgpud recognises a card. The serial number is not among the ids, because a
/// program needs CAP_SYS_ADMIN to read it.
struct PciIds {
    std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    std::uint8_t revision = 0;

    bool operator==(const PciIds&) const = default;
};
/// The ids that all cards of one model share.
struct PciModel {
    std::uint16_t vendor = 0, device = 0;
};
/// "8086:e212 (subsystem 8086:1114, revision 00)"
[[nodiscard]] std::string describe(const PciIds& ids);

/// Who uses a VF. vgpud does not bind, reset or disable a VF whose use is Open or Unknown.
enum class VfUse {
    Closed,
    Open,  ///< a VM has the VF through vfio, or another program has enabled its function
    Host,  ///< a driver of the host has the VF
    /// A file of the VF cannot be read, or the VF has a vGPU type of NVIDIA (see above).
    Unknown,
};

struct VfFunction {
    std::uint32_t vf = 0;  ///< from 1
    std::string address;   ///< "0000:03:00.1"
    std::string driver;    ///< the bound driver; empty: none
    VfUse use = VfUse::Unknown;
    std::string reason;       ///< the error that made `use` Unknown; may be empty
    std::string vgpu_type{};  ///< id of NVIDIA's vGPU type; "0": no type; empty: other driver

    bool operator==(const VfFunction&) const = default;
};

struct PfFunction {
    std::string driver;  ///< the PF's driver; empty: none
    PciIds ids{};
    std::uint32_t total_vfs = 0;    ///< sriov_totalvfs: VFs that the device can have
    bool is_autoprobing = false;    ///< true if new VFs get a driver of the host
    std::vector<VfFunction> vfs{};  ///< the enabled VFs, sorted by number

    /// Null if the VF is not enabled.
    [[nodiscard]] const VfFunction* find(std::uint32_t vf) const;
    bool operator==(const PfFunction&) const = default;
};

/// The PF as it was when vgpud first found it. SriovPf refuses to write after the card or the
/// driver has changed.
struct PfIdentity {
    std::string address;
    PciIds ids{};
    std::string driver;
};

/// Steps that the backend for a PF driver adds when VFs are enabled; by default none.
class EnableSteps {
public:
    virtual ~EnableSteps() = default;
    /// SriovPf calls before_enable() while all VFs are disabled, before it enables `count` VFs.
    virtual Result<> before_enable(std::uint32_t /*count*/) { return {}; }
    /// SriovPf calls after_enable() when `count` VFs are enabled. If set_count() found `count` VFs
    /// enabled already, these VFs may have drivers and run.
    virtual Result<> after_enable(std::uint32_t /*count*/) { return {}; }
};

class SriovPf {
public:
    SriovPf(Sysfs& files, PfIdentity identity) : files_(files), identity_(std::move(identity)) {}

    [[nodiscard]] const std::string& address() const { return identity_.address; }
    [[nodiscard]] const PfIdentity& identity() const { return identity_; }

    // --- reads only (inspect.cpp)
    /// Reads the PF at `address` and its VFs. Does not block while another program changes the
    /// number of VFs, because inspect() follows the links virtfnN and does not read sriov_numvfs.
    /// Leaves out VFs that vanish meanwhile.
    static Result<PfFunction> inspect(Sysfs& files, const std::string& address);
    /// The card at `address` and its driver.
    static Result<PfIdentity> identify(Sysfs& files, const std::string& address);
    /// PfLost unless card and driver are still those of identity().
    Result<PfFunction> inspect();
    /// Reads one VF; none if the VF is not enabled.
    Result<std::optional<VfFunction>> inspect(std::uint32_t vf);
    /// PfLost unless card and driver are still those of identity().
    Result<> check_identity();
    /// PfLost unless card and driver of `now` are those of identity().
    [[nodiscard]] Result<> check_identity(const PfIdentity& now) const;
    /// The driver through which VMs get VFs of this PF: the variant of vfio-pci for the PF's driver
    /// if the variant is loaded, else vfio-pci. AssignmentRefused if neither is loaded, because
    /// vgpud loads no modules.
    Result<std::string> vfio_driver();

    // --- one VF (binding.cpp)
    /// Sets the mode of an enabled VF: None (also for Default), VfioPci or Host. Resets the VF if
    /// its mode changes. VfsInUse if a VM has or may have the VF open, or if a driver of the host
    /// has the VF and `take` is No. AssignmentRefused if no driver for the mode is loaded or takes
    /// the VF. A VF with NVIDIA's vGPU types keeps VfioPci: VfioPci and Default change nothing, and
    /// other modes are AssignmentRefused.
    Result<> bind(std::uint32_t vf, AssignmentMode mode, TakeFromHost take = TakeFromHost::No);
    /// Unbinds the driver of a closed VF, calls `change`, if any, resets the VF (FLR), and binds
    /// the driver again. If `change` fails, skips the reset and returns the error of `change`.
    /// VfsInUse if the VF is not closed; NotOffered if it has NVIDIA's vGPU types. If the reset
    /// fails, or if vgpud dies after the unbind, the VF has no driver, and the next bind() to a
    /// driver resets the VF.
    Result<> reset(std::uint32_t vf, const std::function<Result<>()>& change = {});

    // --- all VFs (vf_count.cpp)
    /// VfsInUse, with the VFs in use, unless every VF is closed. Writes nothing.
    Result<> check_all_closed();
    /// Enables exactly `count` VFs, without drivers. If another number is enabled, first disables
    /// all VFs. If `count` VFs are enabled already, calls only after_enable(). If a VF is in use,
    /// fails with VfsInUse and writes nothing. If a VF is opened while set_count() unbinds the
    /// drivers, binds the drivers again and fails with VfsInUse. OutOfRange if the PF can have
    /// fewer than `count` VFs.
    Result<> set_count(std::uint32_t count, EnableSteps& steps);

private:
    Result<VfFunction> find(std::uint32_t vf);
    Result<> unbind(const VfFunction& vf, TakeFromHost take);
    Result<> probe(const VfFunction& vf, const std::string& driver);
    Result<> probe_host_driver(const VfFunction& vf);
    Result<> reset_unbound(const VfFunction& vf);
    Result<> write_autoprobe(bool is_on);
    Result<> refuse_open_vfs();
    Result<> disable_all(const PfFunction& facts);
    Result<> unbind_all(const PfFunction& facts);
    tl::unexpected<Error> rebind_drivers(const PfFunction& facts, std::size_t count,
                                         const Error& error);
    Result<> write_count(std::uint32_t count);
    [[nodiscard]] std::string pf_path(std::string_view file) const {
        return device_path(address(), file);
    }

    Sysfs& files_;
    const PfIdentity identity_;
};

/// The file of a VF with the id of its vGPU type; only NVIDIA's driver for VMs has it.
inline constexpr std::string_view kVgpuType = "nvidia/current_vgpu_type";

/// "vfio-pci", "xe-vfio-pci", "mlx5_vfio_pci" … : drivers through which a VM opens a function.
[[nodiscard]] bool is_vfio_driver(std::string_view driver);

/// None, VfioPci or Host, by the driver that is bound. VfioPci for a VF with NVIDIA's vGPU types.
[[nodiscard]] AssignmentMode mode_of(const VfFunction& vf);

/// "vf2 (0000:03:00.2) is open through vfio-pci"
[[nodiscard]] std::string describe_use(const VfFunction& vf);

}  // namespace vgpu::daemon::sriov
