// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/function_spec.h"

#include <fmt/format.h>

#include <bit>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/hw/pci.h"
#include "pf-driver/hw/regs.h"

namespace vgpu::softgpu::pci {
namespace {

std::vector<BarSpec> gpu_bars(Bytes vram) {
    return {{VGPU_BAR_VRAM, BarKind::Memory64Prefetchable, vram},
            {VGPU_BAR_DOORBELL, BarKind::Memory64Prefetchable, Bytes{DOORBELL_BAR_BYTES}},
            {VGPU_BAR_REGISTERS, BarKind::Memory32, Bytes{HW_REG_BAR_BYTES}}};
}

}  // namespace

/// The MSI-X table and the pending bits are in BAR5 (hw/pci.h), in place of the registers at those
/// offsets.
FunctionSpec pf_function(Bytes vram, std::uint16_t vf_count, Bytes vf_aperture) {
    FunctionSpec spec;
    spec.name = "PF";
    spec.identity = {.vendor = VGPU_PCI_VENDOR_ATI,
                     .device = VGPU_PCI_DEVICE_PF,
                     .subvendor = VGPU_PCI_SUBVENDOR_PF,
                     .subdevice = VGPU_PCI_SUBDEVICE_PF,
                     .class_code = VGPU_PCI_CLASS,
                     .revision = VGPU_PCI_REVISION};
    spec.bars = gpu_bars(Bytes{std::bit_ceil(vram.count)});
    spec.msix = MsixSpec{.vectors = GPUIOV_VECTOR_COUNT,
                         .bar = VGPU_BAR_REGISTERS,
                         .table_offset = VGPU_MSIX_TABLE_OFFSET,
                         .pba_offset = VGPU_MSIX_PBA_OFFSET};
    spec.sriov = SriovSpec{.total_vfs = vf_count,
                           .first_vf_offset = VGPU_SRIOV_FIRST_VF_OFFSET,
                           .vf_stride = VGPU_SRIOV_VF_STRIDE,
                           .vf_device = VGPU_PCI_DEVICE_VF,
                           .vf_bars = gpu_bars(vf_aperture)};
    spec.vsec =
        VsecSpec{.id = GPUIOV_VSEC_ID, .revision = GPUIOV_VSEC_REV, .length = GPUIOV_VSEC_LENGTH};
    spec.detach_policy = DetachPolicy::KeepConfig;
    return spec;
}

/// Clients of the VF's own socket see these vendor and device ids. On the PF's bus,
/// host_view::BusVf shows all ones instead, as SR-IOV requires.
FunctionSpec vf_function(VfId vf, Bytes aperture) {
    FunctionSpec spec;
    spec.name = fmt::format("VF{}", raw(vf));
    spec.identity = {.vendor = VGPU_PCI_VENDOR_ATI,
                     .device = VGPU_PCI_DEVICE_VF,
                     .subvendor = VGPU_PCI_SUBVENDOR_VF,
                     .subdevice = VGPU_PCI_SUBDEVICE_VF,
                     .class_code = VGPU_PCI_CLASS,
                     .revision = VGPU_PCI_REVISION};
    spec.bars = gpu_bars(aperture);
    spec.has_msi = true;
    return spec;
}

}  // namespace vgpu::softgpu::pci
