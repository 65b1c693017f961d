// SPDX-License-Identifier: MIT
//
// FunctionSpec: the identity, BARs and capabilities of a PCI function, which are constant.
// pf_function() and vf_function() return the specs of a GPU's functions, with the numbers of
// hw/pci.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::pci {

enum class BarKind : std::uint8_t { Memory32, Memory64Prefetchable };

struct BarSpec {
    std::uint32_t index = 0;  ///< 0..5; a 64-bit BAR also takes index + 1
    BarKind kind = BarKind::Memory32;
    Bytes size;  ///< a power of two, at least 4 KiB
};

/// Ids in the type 0 header.
struct Identity {
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    std::uint16_t subvendor = 0;
    std::uint16_t subdevice = 0;
    std::uint32_t class_code = 0;  ///< 24 bits: base class, subclass, interface
    std::uint8_t revision = 0;
};

/// The MSI-X table and the pending bits (PBA), both inside BAR number `bar`; offsets are bytes from
/// the start of that BAR. At most 64 vectors, because the pending bits are one qword.
struct MsixSpec {
    std::uint32_t vectors = 0;
    std::uint32_t bar = 0;
    std::uint32_t table_offset = 0;
    std::uint32_t pba_offset = 0;
};

/// Routing id of VF n = routing id of the PF + first_vf_offset + (n - 1) * vf_stride (PCIe 6.0,
/// 9.2.1.2). `vf_device` is the device id of the VFs.
struct SriovSpec {
    std::uint16_t total_vfs = 0;
    std::uint16_t first_vf_offset = 0;
    std::uint16_t vf_stride = 0;
    std::uint16_t vf_device = 0;
    std::vector<BarSpec> vf_bars;
};

/// Vendor-specific extended capability. The owner of the function serves the bytes after the header
/// (ConfigSpace::claim()).
struct VsecSpec {
    std::uint16_t id = 0;
    std::uint8_t revision = 0;
    std::uint16_t length = 0;  ///< bytes, including the header
};

/// What happens to the configuration when the client leaves. Interrupts are disabled in both cases.
enum class DetachPolicy : std::uint8_t {
    ResetConfig,  ///< for VFs: the next client finds a fresh function
    KeepConfig,   ///< for the PF: VFs stay enabled while the PF's driver is restarted
};

struct FunctionSpec {
    std::string name;  ///< "PF", "VF3"
    Identity identity;
    std::vector<BarSpec> bars;
    bool has_msi = false;  ///< one vector, 64-bit addresses
    std::optional<MsixSpec> msix;
    std::optional<SriovSpec> sriov;
    std::optional<VsecSpec> vsec;
    DetachPolicy detach_policy = DetachPolicy::ResetConfig;
};

/// BAR0 of the PF is `vram`, the VRAM of the device, rounded up to a power of two. `vf_aperture` is
/// the size of BAR0 of each VF.
[[nodiscard]] FunctionSpec pf_function(Bytes vram, std::uint16_t vf_count, Bytes vf_aperture);
/// `aperture` is the size of BAR0.
[[nodiscard]] FunctionSpec vf_function(VfId vf, Bytes aperture);

}  // namespace vgpu::softgpu::pci
