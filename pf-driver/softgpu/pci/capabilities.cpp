// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/capabilities.h"

#include <linux/pci_regs.h>

#include <bit>
#include <cassert>
#include <span>

namespace vgpu::softgpu::pci {
namespace {

// Registers of the PCIe capability: the values of a Vega10 VF, with the FLR bit set. 256-byte
// payloads, extended tags, 8 GT/s x16.
constexpr std::uint32_t kDeviceCapabilities = 0x00008fa1u | PCI_EXP_DEVCAP_FLR;
constexpr std::uint32_t kLinkCapabilities = 0x00000d03;
constexpr std::uint32_t kLinkStatus = 0x1103;
constexpr std::uint32_t kLinkCapabilities2 = 0x0000000e;
constexpr std::uint32_t kPcieVersion2 = 2;
constexpr unsigned kExtendedVersionShift = 16;
constexpr unsigned kExtendedNextShift = 20;
constexpr unsigned kVsecRevisionShift = 16;
constexpr unsigned kVsecLengthShift = 20;
constexpr std::uint32_t kBarBytes = sizeof(std::uint32_t);
constexpr std::uint32_t kSystemPage4KiB = 1;
constexpr std::uint32_t kSriovAriPreserved = 1u << 1;
// Value of the Device Control register after reset (PCIe 6.0, 7.5.3.4).
constexpr std::uint32_t kDeviceControl =
    PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B;

std::uint32_t extended_header(std::uint16_t id, std::uint32_t next) {
    return id | 1u << kExtendedVersionShift | next << kExtendedNextShift;
}

std::uint32_t bar_attributes(BarKind kind) {
    return kind == BarKind::Memory32 ? PCI_BASE_ADDRESS_MEM_TYPE_32
                                     : PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
}

void add_header(ConfigSpace& config, const FunctionSpec& spec) {
    const Identity& id = spec.identity;
    constexpr std::uint32_t kCommand = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
                                       PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
                                       PCI_COMMAND_INTX_DISABLE;
    constexpr std::uint32_t kErrors = PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT |
                                      PCI_STATUS_REC_TARGET_ABORT | PCI_STATUS_REC_MASTER_ABORT |
                                      PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY;
    config.add(0, {{PCI_VENDOR_ID, 2, id.vendor},
                   {PCI_DEVICE_ID, 2, id.device},
                   {PCI_COMMAND, 2, 0, kCommand},
                   {PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0, kErrors},
                   {PCI_CLASS_REVISION, 4, id.revision | id.class_code << 8},
                   {PCI_CACHE_LINE_SIZE, 1, 0, 0xff},
                   {PCI_SUBSYSTEM_VENDOR_ID, 2, id.subvendor},
                   {PCI_SUBSYSTEM_ID, 2, id.subdevice},
                   {PCI_CAPABILITY_LIST, 1, VGPU_CAP_PCIE},
                   {PCI_INTERRUPT_LINE, 1, 0, 0xff}});
    add_bars(config, PCI_BASE_ADDRESS_0, spec.bars);
}

/// The capability is the same for the PF and for VFs, also when a VM sees a VF through the host
/// view (host_view/bus_vf.h). The bit BCR_FLR of Device Control always reads 0: a write of 1 resets
/// the function, and the reset clears the bit before the write returns.
void add_pcie(ConfigSpace& config, std::uint32_t next) {
    constexpr std::uint32_t kLinkControl =
        PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES;
    constexpr std::uint32_t kErrors =
        PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED | PCI_EXP_DEVSTA_URD;
    config.add(VGPU_CAP_PCIE, {{PCI_CAP_LIST_ID, 2, PCI_CAP_ID_EXP | next << 8},
                               {PCI_EXP_FLAGS, 2, kPcieVersion2},
                               {PCI_EXP_DEVCAP, 4, kDeviceCapabilities},
                               {PCI_EXP_DEVCTL, 2, kDeviceControl, 0xffff},
                               {PCI_EXP_DEVSTA, 2, 0, 0, kErrors},
                               {PCI_EXP_LNKCAP, 4, kLinkCapabilities},
                               {PCI_EXP_LNKCTL, 2, 0, kLinkControl},
                               {PCI_EXP_LNKSTA, 2, kLinkStatus},
                               {PCI_EXP_DEVCTL2, 2, 0,
                                PCI_EXP_DEVCTL2_COMP_TIMEOUT | PCI_EXP_DEVCTL2_COMP_TMOUT_DIS},
                               {PCI_EXP_LNKCAP2, 4, kLinkCapabilities2}});
}

/// MSI with one vector. Bits 1:0 of the address read 0, because a message is an aligned dword.
void add_msi(ConfigSpace& config, std::uint32_t next) {
    config.add(VGPU_CAP_MSI,
               {{PCI_CAP_LIST_ID, 2, PCI_CAP_ID_MSI | next << 8},
                {PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT, PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE},
                {PCI_MSI_ADDRESS_LO, 4, 0, ~0x3u},
                {PCI_MSI_ADDRESS_HI, 4, 0, ~0u},
                {PCI_MSI_DATA_64, 2, 0, 0xffff}});
}

void add_msix(ConfigSpace& config, const MsixSpec& msix) {
    config.add(VGPU_CAP_MSIX, {{PCI_CAP_LIST_ID, 2, PCI_CAP_ID_MSIX},
                               {PCI_MSIX_FLAGS, 2, msix.vectors - 1,
                                PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL},
                               {PCI_MSIX_TABLE, 4, msix.table_offset | msix.bar},
                               {PCI_MSIX_PBA, 4, msix.pba_offset | msix.bar}});
}

void add_sriov(ConfigSpace& config, const SriovSpec& sriov, std::uint32_t next) {
    config.add(VGPU_ECAP_SRIOV, {{0, 4, extended_header(PCI_EXT_CAP_ID_SRIOV, next)},
                                 {PCI_SRIOV_CAP, 4, kSriovAriPreserved},
                                 {PCI_SRIOV_CTRL, 2, 0,
                                  PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE | PCI_SRIOV_CTRL_ARI},
                                 {PCI_SRIOV_INITIAL_VF, 2, sriov.total_vfs},
                                 {PCI_SRIOV_TOTAL_VF, 2, sriov.total_vfs},
                                 {PCI_SRIOV_NUM_VF, 2, 0, 0xffff},
                                 {PCI_SRIOV_VF_OFFSET, 2, sriov.first_vf_offset},
                                 {PCI_SRIOV_VF_STRIDE, 2, sriov.vf_stride},
                                 {PCI_SRIOV_VF_DID, 2, sriov.vf_device},
                                 {PCI_SRIOV_SUP_PGSIZE, 4, kSupportedPageSizes},
                                 {PCI_SRIOV_SYS_PGSIZE, 4, kSystemPage4KiB, kSupportedPageSizes}});
    add_bars(config, VGPU_ECAP_SRIOV + PCI_SRIOV_BAR, sriov.vf_bars);
}

void add_vsec(ConfigSpace& config, const VsecSpec& vsec) {
    config.add(VGPU_ECAP_VSEC, {{0, 4, extended_header(PCI_EXT_CAP_ID_VNDR, 0)},
                                {4, 4,
                                 vsec.id | std::uint32_t{vsec.revision} << kVsecRevisionShift |
                                     std::uint32_t{vsec.length} << kVsecLengthShift}});
}

/// The extended capability list must start at 0x100 (VGPU_ECAP_SRIOV). So a function without SR-IOV
/// has a null capability there, which only points to ARI.
void add_extended(ConfigSpace& config, const FunctionSpec& spec) {
    if (spec.sriov)
        add_sriov(config, *spec.sriov, VGPU_ECAP_ARI);
    else
        config.add(VGPU_ECAP_SRIOV, {{0, 4, std::uint32_t{VGPU_ECAP_ARI} << kExtendedNextShift}});
    const std::uint32_t after_ari = spec.vsec ? std::uint32_t{VGPU_ECAP_VSEC} : 0;
    config.add(VGPU_ECAP_ARI, {{0, 4, extended_header(PCI_EXT_CAP_ID_ARI, after_ari)}});
    if (spec.vsec) add_vsec(config, *spec.vsec);
}

}  // namespace

/// The address bits below the size of a BAR always read 0. A driver writes all ones and finds the
/// size from the bits that stay 0 (PCIe 6.0, 7.5.1.2.1).
void add_bars(ConfigSpace& config, std::uint32_t first_register, std::span<const BarSpec> bars) {
    for (const BarSpec& bar : bars) {
        assert(std::has_single_bit(bar.size.count) && bar.size.count >= VGPU_PCI_CONFIG_BYTES);
        const std::uint32_t at = first_register + bar.index * kBarBytes;
        const std::uint64_t mask = ~(bar.size.count - 1);
        config.add(at, {{0, 4, bar_attributes(bar.kind), low32(mask)}});
        if (bar.kind == BarKind::Memory64Prefetchable)
            config.add(at, {{kBarBytes, 4, 0, high32(mask)}});
    }
}

std::uint64_t bar_address(const ConfigSpace& config, std::uint32_t first_register,
                          const BarSpec& bar) {
    const std::uint32_t at = first_register + bar.index * kBarBytes;
    const std::uint32_t low = config.get<std::uint32_t>(at) & ~0xfu;
    if (bar.kind == BarKind::Memory32) return low;
    return join(low, config.get<std::uint32_t>(at + kBarBytes));
}

/// The capability list is PCIe, then MSI and MSI-X if present.
void build_config(ConfigSpace& config, const FunctionSpec& spec) {
    add_header(config, spec);
    const std::uint32_t msix_at = spec.msix ? std::uint32_t{VGPU_CAP_MSIX} : 0;
    add_pcie(config, spec.has_msi ? std::uint32_t{VGPU_CAP_MSI} : msix_at);
    if (spec.has_msi) add_msi(config, msix_at);
    if (spec.msix) add_msix(config, *spec.msix);
    add_extended(config, spec);
    config.seal();
}

}  // namespace vgpu::softgpu::pci
