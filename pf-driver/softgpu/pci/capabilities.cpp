// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/capabilities.h"

#include <linux/pci_regs.h>

#include <bit>
#include <cassert>
#include <limits>
#include <span>

namespace vgpu::softgpu::pci {
namespace {

// DevCap, LnkCap and the like of a Vega10 VF with FLR: 256-byte payloads, extended tags, 8 GT/s x16
constexpr std::uint32_t kDeviceCapabilities = 0x00008fa1u | PCI_EXP_DEVCAP_FLR;
constexpr std::uint32_t kLinkCapabilities = 0x00000d03;
constexpr std::uint16_t kLinkStatus = 0x1103;
constexpr std::uint32_t kLinkCapabilities2 = 0x0000000e;
constexpr std::uint16_t kPcieVersion2 = 2;
constexpr std::uint16_t kMsiVectors1 = 0;  // log2
constexpr unsigned kExtendedVersionShift = 16;
constexpr unsigned kExtendedNextShift = 20;
constexpr unsigned kVsecRevisionShift = 16;
constexpr unsigned kVsecLengthShift = 20;
constexpr std::uint32_t kSystemPage4KiB = 1;
constexpr std::uint32_t kSriovAriPreserved = 1u << 1;
// The values the specification gives after reset.
constexpr std::uint16_t kDeviceControl =
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
    config.set(PCI_VENDOR_ID, id.vendor);
    config.set(PCI_DEVICE_ID, id.device);
    config.set(PCI_STATUS, std::uint16_t{PCI_STATUS_CAP_LIST});
    config.set(PCI_CLASS_REVISION, id.revision | id.class_code << 8);
    config.set(PCI_SUBSYSTEM_VENDOR_ID, id.subvendor);
    config.set(PCI_SUBSYSTEM_ID, id.subdevice);
    config.set(PCI_CAPABILITY_LIST, std::uint8_t{VGPU_CAP_PCIE});
    constexpr std::uint16_t kCommand = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
                                       PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
                                       PCI_COMMAND_INTX_DISABLE;
    constexpr std::uint16_t kErrors = PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT |
                                      PCI_STATUS_REC_TARGET_ABORT | PCI_STATUS_REC_MASTER_ABORT |
                                      PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY;
    config.allow_writes(PCI_COMMAND, kCommand);
    config.clear_on_one(PCI_STATUS, kErrors);
    config.allow_writes(PCI_CACHE_LINE_SIZE, std::uint8_t{0xff});
    config.allow_writes(PCI_INTERRUPT_LINE, std::uint8_t{0xff});
    add_bars(config, PCI_BASE_ADDRESS_0, spec.bars);
}

/// The same capability for PF and VF; BusVf shows the differences of a VF on the PF's bus.
void add_pcie(ConfigSpace& config, std::uint8_t next) {
    PcieCapability pcie{};
    pcie.id = PCI_CAP_ID_EXP;
    pcie.next = next;
    pcie.flags = kPcieVersion2;
    pcie.device_capabilities = kDeviceCapabilities;
    pcie.device_control = kDeviceControl;
    pcie.link_capabilities = kLinkCapabilities;
    pcie.link_status = kLinkStatus;
    pcie.link_capabilities2 = kLinkCapabilities2;
    config.set(VGPU_CAP_PCIE, pcie);
    // BCR_FLR reads as zero: Function clears it after the reset.
    PcieCapability writable{};
    writable.device_control = std::numeric_limits<std::uint16_t>::max();
    writable.link_control =
        PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES;
    writable.device_control2 = PCI_EXP_DEVCTL2_COMP_TIMEOUT | PCI_EXP_DEVCTL2_COMP_TMOUT_DIS;
    config.allow_writes(VGPU_CAP_PCIE, writable);
    PcieCapability cleared{};
    cleared.device_status =
        PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED | PCI_EXP_DEVSTA_URD;
    config.clear_on_one(VGPU_CAP_PCIE, cleared);
}

/// Bits [1:0] of the address read 0: messages are dwords.
void add_msi(ConfigSpace& config, std::uint8_t next) {
    const MsiCapability msi{.id = PCI_CAP_ID_MSI,
                            .next = next,
                            .control = PCI_MSI_FLAGS_64BIT | kMsiVectors1,
                            .address_low = 0,
                            .address_high = 0,
                            .data = 0};
    config.set(VGPU_CAP_MSI, msi);
    config.allow_writes(VGPU_CAP_MSI,
                        MsiCapability{.id = 0,
                                      .next = 0,
                                      .control = PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE,
                                      .address_low = ~0x3u,
                                      .address_high = ~0u,
                                      .data = 0xffff});
}

void add_msix(ConfigSpace& config, const MsixSpec& msix, std::uint8_t next) {
    config.set(VGPU_CAP_MSIX,
               MsixCapability{.id = PCI_CAP_ID_MSIX,
                              .next = next,
                              .control = static_cast<std::uint16_t>(msix.vectors - 1),
                              .table = msix.table_offset | msix.bar,
                              .pba = msix.pba_offset | msix.bar});
    config.allow_writes(VGPU_CAP_MSIX,
                        MsixCapability{.id = 0,
                                       .next = 0,
                                       .control = PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL,
                                       .table = 0,
                                       .pba = 0});
}

void add_sriov(ConfigSpace& config, const SriovSpec& sriov, std::uint32_t next) {
    SriovCapability capability{};
    capability.header = extended_header(PCI_EXT_CAP_ID_SRIOV, next);
    capability.capabilities = kSriovAriPreserved;
    capability.initial_vfs = sriov.total_vfs;
    capability.total_vfs = sriov.total_vfs;
    capability.first_vf_offset = sriov.first_vf_offset;
    capability.vf_stride = sriov.vf_stride;
    capability.vf_device = sriov.vf_device;
    capability.supported_page_sizes = kSupportedPageSizes;
    capability.system_page_size = kSystemPage4KiB;
    config.set(VGPU_ECAP_SRIOV, capability);
    SriovCapability writable{};
    writable.control = PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE | PCI_SRIOV_CTRL_ARI;
    writable.num_vfs = std::numeric_limits<std::uint16_t>::max();
    writable.system_page_size = kSupportedPageSizes;
    config.allow_writes(VGPU_ECAP_SRIOV, writable);
    add_bars(config, VGPU_ECAP_SRIOV + PCI_SRIOV_BAR, sriov.vf_bars);
}

void add_vsec(ConfigSpace& config, const VsecSpec& vsec) {
    config.set(VGPU_ECAP_VSEC, VsecHeader{.header = extended_header(PCI_EXT_CAP_ID_VNDR, 0),
                                          .vendor_header = static_cast<std::uint32_t>(
                                              vsec.id | vsec.revision << kVsecRevisionShift |
                                              vsec.length << kVsecLengthShift)});
}

// The extended list starts at 0x100; a function without SR-IOV has a null capability there.
void add_extended(ConfigSpace& config, const FunctionSpec& spec) {
    if (spec.sriov)
        add_sriov(config, *spec.sriov, VGPU_ECAP_ARI);
    else
        config.set(VGPU_ECAP_SRIOV, std::uint32_t{VGPU_ECAP_ARI} << kExtendedNextShift);
    const std::uint32_t after_ari = spec.vsec ? std::uint32_t{VGPU_ECAP_VSEC} : 0;
    config.set(VGPU_ECAP_ARI,
               AriCapability{.header = extended_header(PCI_EXT_CAP_ID_ARI, after_ari),
                             .capability = 0,
                             .control = 0});
    if (spec.vsec) add_vsec(config, *spec.vsec);
}

}  // namespace

/// All ones written read back as the size (PCIe 6.0, 7.5.1.2.1): address bits below it stay 0.
void add_bars(ConfigSpace& config, std::uint32_t first_register, std::span<const BarSpec> bars) {
    for (const BarSpec& bar : bars) {
        assert(std::has_single_bit(bar.size.count) && bar.size.count >= VGPU_PCI_CONFIG_BYTES);
        const std::uint32_t at =
            first_register + bar.index * static_cast<std::uint32_t>(sizeof(std::uint32_t));
        const std::uint64_t mask = ~(bar.size.count - 1);
        config.set(at, bar_attributes(bar.kind));
        config.allow_writes(at, low32(mask));
        if (bar.kind == BarKind::Memory64Prefetchable)
            config.allow_writes(at + static_cast<std::uint32_t>(sizeof(std::uint32_t)),
                                high32(mask));
    }
}

std::uint64_t bar_address(const ConfigSpace& config, std::uint32_t first_register,
                          const BarSpec& bar) {
    const std::uint32_t at =
        first_register + bar.index * static_cast<std::uint32_t>(sizeof(std::uint32_t));
    const std::uint32_t low = config.get<std::uint32_t>(at) & ~0xfu;
    if (bar.kind == BarKind::Memory32) return low;
    return join(low,
                config.get<std::uint32_t>(at + static_cast<std::uint32_t>(sizeof(std::uint32_t))));
}

/// The list: PCIe, then MSI or MSI-X; the extended list starts at 0x100.
void build_config(ConfigSpace& config, const FunctionSpec& spec) {
    add_header(config, spec);
    const std::uint8_t msix_at = spec.msix ? VGPU_CAP_MSIX : 0;
    add_pcie(config, spec.has_msi ? std::uint8_t{VGPU_CAP_MSI} : msix_at);
    if (spec.has_msi) add_msi(config, msix_at);
    if (spec.msix) add_msix(config, *spec.msix, 0);
    add_extended(config, spec);
    config.seal();
}

}  // namespace vgpu::softgpu::pci
