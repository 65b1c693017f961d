// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/root_port.h"

#include <linux/pci_regs.h>

#include <initializer_list>

#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::host_view {
namespace {

using Registers = std::initializer_list<std::uint32_t>;

constexpr std::uint16_t kPcieVersion2 = 2;
constexpr unsigned kPcieTypeShift = 4;
constexpr unsigned kClassShift = 8;
constexpr unsigned kLinkWidthShift = 4;
constexpr unsigned kLinkWidth16 = 16;
// A link of 2.5 GT/s that does not report its state gives the kernel's shortest wait after a reset.
constexpr unsigned kLink = PCI_EXP_LNKCAP_SLS_2_5GB | kLinkWidth16 << kLinkWidthShift;
constexpr unsigned kPortNumberShift = 24;
constexpr std::uint16_t kPmVersion3 = 3;

constexpr unsigned kWindowShift = 16;
constexpr std::uint64_t kWindowLast = 0xfffff;  // windows end on a MiB
constexpr std::uint32_t kDevfnMask = 0xff;
constexpr std::uint32_t kFunctionsOfDevice0 = 8;
constexpr std::uint32_t kFunctionsOfBus = 256;

constexpr pci::BarSpec kBar{0, pci::BarKind::Memory32, Bytes{VGPU_ROOT_PORT_BAR_BYTES}};

void add_header(pci::ConfigSpace& config) {
    config.set(PCI_VENDOR_ID, std::uint16_t{VGPU_HOST_VIEW_VENDOR});
    config.set(PCI_DEVICE_ID, std::uint16_t{VGPU_ROOT_PORT_DEVICE});
    config.set(PCI_STATUS, std::uint16_t{PCI_STATUS_CAP_LIST});
    config.set(PCI_CLASS_REVISION, std::uint32_t{VGPU_ROOT_PORT_CLASS} << kClassShift);
    config.set(PCI_HEADER_TYPE, std::uint8_t{PCI_HEADER_TYPE_BRIDGE});
    config.set(PCI_CAPABILITY_LIST, std::uint8_t{VGPU_CAP_ROOT_PORT_PCIE});
    config.allow_writes(PCI_COMMAND,
                        std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
                                      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE});
    pci::add_bars(config, PCI_BASE_ADDRESS_0, {&kBar, 1});
    config.allow_writes(PCI_CACHE_LINE_SIZE, std::uint8_t{0xff});
    for (const std::uint32_t at :
         Registers{PCI_PRIMARY_BUS, PCI_SECONDARY_BUS, PCI_SUBORDINATE_BUS})
        config.allow_writes(at, std::uint8_t{0xff});
    for (const std::uint32_t at : Registers{PCI_MEMORY_BASE, PCI_MEMORY_LIMIT})
        config.allow_writes(at, std::uint16_t{PCI_MEMORY_RANGE_MASK & 0xffff});
    for (const std::uint32_t at : Registers{PCI_PREF_MEMORY_BASE, PCI_PREF_MEMORY_LIMIT}) {
        config.set(at, std::uint16_t{PCI_PREF_RANGE_TYPE_64});
        config.allow_writes(at, std::uint16_t{PCI_PREF_RANGE_MASK & 0xffff});
    }
    for (const std::uint32_t at : Registers{PCI_PREF_BASE_UPPER32, PCI_PREF_LIMIT_UPPER32})
        config.allow_writes(at, ~std::uint32_t{0});
    config.allow_writes(PCI_BRIDGE_CONTROL,
                        std::uint16_t{PCI_BRIDGE_CTL_PARITY | PCI_BRIDGE_CTL_SERR |
                                      PCI_BRIDGE_CTL_MASTER_ABORT | PCI_BRIDGE_CTL_BUS_RESET});
}

void add_pcie(pci::ConfigSpace& config) {
    pci::PcieCapability pcie{};
    pcie.id = PCI_CAP_ID_EXP;
    pcie.next = VGPU_CAP_ROOT_PORT_PM;
    pcie.flags =
        static_cast<std::uint16_t>(kPcieVersion2 | PCI_EXP_TYPE_ROOT_PORT << kPcieTypeShift);
    pcie.device_capabilities = PCI_EXP_DEVCAP_RBER | 1;  // payloads of 256 bytes
    pcie.link_capabilities = kLink | 1u << kPortNumberShift;
    pcie.link_status = kLink;
    pcie.device_capabilities2 = PCI_EXP_DEVCAP2_ARI;
    pcie.link_capabilities2 = PCI_EXP_LNKCAP2_SLS_2_5GB;
    pcie.link_control2 = PCI_EXP_LNKCTL2_TLS_2_5GT;
    config.set(VGPU_CAP_ROOT_PORT_PCIE, pcie);
    pci::PcieCapability writable{};
    writable.device_control = PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE |
                              PCI_EXP_DEVCTL_URRE | PCI_EXP_DEVCTL_RELAX_EN |
                              PCI_EXP_DEVCTL_PAYLOAD;
    writable.link_control = PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_LD |
                            PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES;
    writable.device_control2 =
        PCI_EXP_DEVCTL2_COMP_TIMEOUT | PCI_EXP_DEVCTL2_COMP_TMOUT_DIS | PCI_EXP_DEVCTL2_ARI;
    writable.link_control2 = PCI_EXP_LNKCTL2_TLS;
    config.allow_writes(VGPU_CAP_ROOT_PORT_PCIE, writable);
}

void add_power_management(pci::ConfigSpace& config) {
    config.set(VGPU_CAP_ROOT_PORT_PM, std::uint8_t{PCI_CAP_ID_PM});
    config.set(VGPU_CAP_ROOT_PORT_PM + PCI_PM_PMC, kPmVersion3);
    config.set(VGPU_CAP_ROOT_PORT_PM + PCI_PM_CTRL, std::uint16_t{PCI_PM_CTRL_NO_SOFT_RESET});
    config.allow_writes(VGPU_CAP_ROOT_PORT_PM + PCI_PM_CTRL, std::uint16_t{PCI_PM_CTRL_STATE_MASK});
}

/// Bytes from `address` to the end of the window.
std::uint64_t left_of(std::uint64_t address, std::uint64_t first, std::uint64_t last) {
    return address >= first && address <= last ? last - address + 1 : 0;
}

}  // namespace

RootPort::RootPort(std::function<void()> secondary_reset)
    : secondary_reset_(std::move(secondary_reset)) {
    add_header(config_);
    add_pcie(config_);
    add_power_management(config_);
    config_.on_write(PCI_BRIDGE_CONTROL, sizeof(std::uint16_t),
                     [this] { bridge_control_changed(); });
    config_.seal();
}

/// The edge resets; the level keeps the bus silent until the driver clears it.
void RootPort::bridge_control_changed() {
    const auto control = config_.get<std::uint16_t>(PCI_BRIDGE_CONTROL);
    const bool was_in_reset = is_in_reset_;
    is_in_reset_ = (control & PCI_BRIDGE_CTL_BUS_RESET) != 0;
    if (is_in_reset_ && !was_in_reset) secondary_reset_();
}

void RootPort::reset() {
    config_.reset();
    is_in_reset_ = false;
}

/// Without ARI only the eight functions of the port's one device are in reach (PCIe 6.0, 6.13).
std::optional<std::uint32_t> RootPort::function_behind(std::uint32_t bus,
                                                       std::uint32_t devfn) const {
    const std::uint32_t secondary = config_.get<std::uint8_t>(PCI_SECONDARY_BUS);
    const std::uint32_t subordinate = config_.get<std::uint8_t>(PCI_SUBORDINATE_BUS);
    if (secondary == 0 || bus < secondary || bus > subordinate || is_in_reset_) return std::nullopt;
    const auto control2 = config_.get<std::uint16_t>(VGPU_CAP_ROOT_PORT_PCIE + PCI_EXP_DEVCTL2);
    const bool is_ari = (control2 & PCI_EXP_DEVCTL2_ARI) != 0;
    if (bus == secondary && !is_ari && devfn >= kFunctionsOfDevice0) return std::nullopt;
    return (bus - secondary) * kFunctionsOfBus + (devfn & kDevfnMask);
}

bool RootPort::decodes() const {
    return (config_.get<std::uint16_t>(PCI_COMMAND) & PCI_COMMAND_MEMORY) != 0;
}

/// Unsigned difference: addresses below the BAR become large and fail the check.
std::optional<std::uint64_t> RootPort::in_own_bar(std::uint64_t address) const {
    const std::uint64_t offset = address - pci::bar_address(config_, PCI_BASE_ADDRESS_0, kBar);
    if (!decodes() || offset >= kBar.size.count) return std::nullopt;
    return offset;
}

std::uint64_t RootPort::forwards(std::uint64_t address) const {
    if (!decodes() || is_in_reset_) return 0;
    const auto part = [this](std::uint32_t at) -> std::uint64_t {
        return std::uint64_t{config_.get<std::uint16_t>(at) & PCI_MEMORY_RANGE_MASK & 0xffff}
               << kWindowShift;
    };
    const auto upper = [this](std::uint32_t at) { return join(0, config_.get<std::uint32_t>(at)); };
    const std::uint64_t low =
        left_of(address, part(PCI_MEMORY_BASE), part(PCI_MEMORY_LIMIT) | kWindowLast);
    if (low != 0) return low;
    return left_of(address, upper(PCI_PREF_BASE_UPPER32) | part(PCI_PREF_MEMORY_BASE),
                   upper(PCI_PREF_LIMIT_UPPER32) | part(PCI_PREF_MEMORY_LIMIT) | kWindowLast);
}

}  // namespace vgpu::softgpu::host_view
