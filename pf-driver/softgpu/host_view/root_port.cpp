// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/root_port.h"

#include <linux/pci_regs.h>

#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::host_view {
namespace {

constexpr unsigned kPcieVersion2 = 2;
constexpr unsigned kPcieTypeShift = 4;
constexpr unsigned kClassShift = 8;
constexpr unsigned kLinkWidthShift = 4;
constexpr unsigned kLinkWidth16 = 16;
// 2.5 GT/s without link-active reporting, because Linux then has the shortest wait after a reset.
constexpr unsigned kLink = PCI_EXP_LNKCAP_SLS_2_5GB | kLinkWidth16 << kLinkWidthShift;
constexpr unsigned kPortNumberShift = 24;
constexpr unsigned kPmVersion3 = 3;

constexpr unsigned kWindowShift = 16;  // bits 15:4 of a window register are address bits 31:20
constexpr std::uint64_t kWindowLast = 0xfffff;  // windows consist of whole MiB
constexpr std::uint32_t kDevfnMask = 0xff;
constexpr std::uint32_t kFunctionsOfDevice0 = 8;
constexpr std::uint32_t kFunctionsOfBus = 256;

constexpr pci::BarSpec kBar{0, pci::BarKind::Memory32, Bytes{VGPU_ROOT_PORT_BAR_BYTES}};

void add_header(pci::ConfigSpace& config) {
    constexpr std::uint32_t kCommand = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
                                       PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
                                       PCI_COMMAND_INTX_DISABLE;
    constexpr std::uint32_t kWindow = PCI_MEMORY_RANGE_MASK & 0xffff;
    constexpr std::uint32_t kControl = PCI_BRIDGE_CTL_PARITY | PCI_BRIDGE_CTL_SERR |
                                       PCI_BRIDGE_CTL_MASTER_ABORT | PCI_BRIDGE_CTL_BUS_RESET;
    config.add(0, {{PCI_VENDOR_ID, 2, VGPU_HOST_VIEW_VENDOR},
                   {PCI_DEVICE_ID, 2, VGPU_ROOT_PORT_DEVICE},
                   {PCI_COMMAND, 2, 0, kCommand},
                   {PCI_STATUS, 2, PCI_STATUS_CAP_LIST},
                   {PCI_CLASS_REVISION, 4, std::uint32_t{VGPU_ROOT_PORT_CLASS} << kClassShift},
                   {PCI_CACHE_LINE_SIZE, 1, 0, 0xff},
                   {PCI_HEADER_TYPE, 1, PCI_HEADER_TYPE_BRIDGE},
                   {PCI_PRIMARY_BUS, 3, 0, 0xffffff},  // and secondary, subordinate
                   {PCI_MEMORY_BASE, 2, 0, kWindow},
                   {PCI_MEMORY_LIMIT, 2, 0, kWindow},
                   {PCI_PREF_MEMORY_BASE, 2, PCI_PREF_RANGE_TYPE_64, kWindow},
                   {PCI_PREF_MEMORY_LIMIT, 2, PCI_PREF_RANGE_TYPE_64, kWindow},
                   {PCI_PREF_BASE_UPPER32, 4, 0, ~0u},
                   {PCI_PREF_LIMIT_UPPER32, 4, 0, ~0u},
                   {PCI_CAPABILITY_LIST, 1, VGPU_CAP_ROOT_PORT_PCIE},
                   {PCI_BRIDGE_CONTROL, 2, 0, kControl}});
    pci::add_bars(config, PCI_BASE_ADDRESS_0, {&kBar, 1});
}

void add_pcie(pci::ConfigSpace& config) {
    constexpr std::uint32_t kControl = PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE |
                                       PCI_EXP_DEVCTL_FERE | PCI_EXP_DEVCTL_URRE |
                                       PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD;
    constexpr std::uint32_t kLinkControl = PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB |
                                           PCI_EXP_LNKCTL_LD | PCI_EXP_LNKCTL_CCC |
                                           PCI_EXP_LNKCTL_ES;
    constexpr std::uint32_t kControl2 =
        PCI_EXP_DEVCTL2_COMP_TIMEOUT | PCI_EXP_DEVCTL2_COMP_TMOUT_DIS | PCI_EXP_DEVCTL2_ARI;
    config.add(VGPU_CAP_ROOT_PORT_PCIE,
               {{PCI_CAP_LIST_ID, 2, PCI_CAP_ID_EXP | VGPU_CAP_ROOT_PORT_PM << 8},
                {PCI_EXP_FLAGS, 2, kPcieVersion2 | PCI_EXP_TYPE_ROOT_PORT << kPcieTypeShift},
                {PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER | 1},  // payloads of 256 bytes
                {PCI_EXP_DEVCTL, 2, 0, kControl},
                {PCI_EXP_LNKCAP, 4, kLink | 1u << kPortNumberShift},
                {PCI_EXP_LNKCTL, 2, 0, kLinkControl},
                {PCI_EXP_LNKSTA, 2, kLink},
                {PCI_EXP_DEVCAP2, 4, PCI_EXP_DEVCAP2_ARI},
                {PCI_EXP_DEVCTL2, 2, 0, kControl2},
                {PCI_EXP_LNKCAP2, 4, PCI_EXP_LNKCAP2_SLS_2_5GB},
                {PCI_EXP_LNKCTL2, 2, PCI_EXP_LNKCTL2_TLS_2_5GT, PCI_EXP_LNKCTL2_TLS}});
}

void add_power_management(pci::ConfigSpace& config) {
    config.add(VGPU_CAP_ROOT_PORT_PM,
               {{PCI_CAP_LIST_ID, 1, PCI_CAP_ID_PM},
                {PCI_PM_PMC, 2, kPmVersion3},
                {PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET, PCI_PM_CTRL_STATE_MASK}});
}

/// Bytes from `address` to the end of the window [first, last]; 0 if the address is outside.
std::uint64_t bytes_left(std::uint64_t address, std::uint64_t first, std::uint64_t last) {
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

/// Resets the bus when the VM sets BUS_RESET. While the bit is set, the port forwards nothing.
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

/// On the secondary bus, without ARI forwarding, only the eight functions of device 0 can be
/// reached (PCIe 6.0, 6.13). The buses below it are not limited.
std::optional<std::uint32_t> RootPort::routing_id_of(std::uint32_t bus, std::uint32_t devfn) const {
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

/// The difference is unsigned, so an address below the BAR gives a large offset and fails the
/// check.
std::optional<std::uint64_t> RootPort::own_bar_offset(std::uint64_t address) const {
    const std::uint64_t offset = address - pci::bar_address(config_, PCI_BASE_ADDRESS_0, kBar);
    if (!decodes() || offset >= kBar.size.count) return std::nullopt;
    return offset;
}

std::uint64_t RootPort::forwarded_bytes(std::uint64_t address) const {
    if (!decodes() || is_in_reset_) return 0;
    const auto low_bits = [this](std::uint32_t at) -> std::uint64_t {
        return std::uint64_t{config_.get<std::uint16_t>(at) & PCI_MEMORY_RANGE_MASK & 0xffff}
               << kWindowShift;
    };
    const auto high_bits = [this](std::uint32_t at) {
        return join(0, config_.get<std::uint32_t>(at));
    };
    const std::uint64_t left_in_low_window =
        bytes_left(address, low_bits(PCI_MEMORY_BASE), low_bits(PCI_MEMORY_LIMIT) | kWindowLast);
    if (left_in_low_window != 0) return left_in_low_window;
    return bytes_left(
        address, high_bits(PCI_PREF_BASE_UPPER32) | low_bits(PCI_PREF_MEMORY_BASE),
        high_bits(PCI_PREF_LIMIT_UPPER32) | low_bits(PCI_PREF_MEMORY_LIMIT) | kWindowLast);
}

}  // namespace vgpu::softgpu::host_view
