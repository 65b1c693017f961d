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

/// Type 0 header, in the terms of lspci -n.
struct Identity {
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    std::uint16_t subvendor = 0;
    std::uint16_t subdevice = 0;
    std::uint32_t class_code = 0;  ///< 24 bits
    std::uint8_t revision = 0;
};

/// A table of MSI-X vectors and its pending bits inside one BAR. Offsets are bytes inside the BAR.
/// At most 64 vectors, because the pending bits are one qword.
struct MsixSpec {
    std::uint32_t vectors = 0;
    std::uint32_t bar = 0;
    std::uint32_t table_offset = 0;
    std::uint32_t pba_offset = 0;
};

/// Routing id of VF n: the PF's + first_vf_offset + (n - 1) * vf_stride (PCIe 6.0, 9.2.1.2).
struct SriovSpec {
    std::uint16_t total_vfs = 0;
    std::uint16_t first_vf_offset = 0;
    std::uint16_t vf_stride = 0;
    std::uint16_t vf_device = 0;
    std::vector<BarSpec> vf_bars;
};

/// Vendor-specific extended capability. The owner of the function claims the bytes after the
/// header.
struct VsecSpec {
    std::uint16_t id = 0;
    std::uint8_t revision = 0;
    std::uint16_t length = 0;
};

/// The effect on the configuration when the client leaves. Interrupts end in both cases.
enum class DetachPolicy : std::uint8_t {
    ResetConfig,  ///< a VF: the next client finds a fresh function
    KeepConfig,   ///< the PF: VFs stay enabled while its driver is restarted
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

/// `vram` is the size of the device's VRAM, which BAR0 rounds up to a power of two. `vf_aperture`
/// is the size of BAR0 of a VF.
[[nodiscard]] FunctionSpec pf_function(Bytes vram, std::uint16_t vf_count, Bytes vf_aperture);
[[nodiscard]] FunctionSpec vf_function(VfId vf, Bytes aperture);

}  // namespace vgpu::softgpu::pci
