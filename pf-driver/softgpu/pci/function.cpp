// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/function.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::pci {
namespace {

using vfio_user::Irq;

constexpr std::uint32_t kConfigRegion = static_cast<std::uint32_t>(vfio_user::Region::Config);
constexpr std::byte kAllOnes{0xff};
constexpr std::uint32_t kPendingBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kPageBytes = vfio_user::kPageBytes;

Delivery delivery_if(std::uint32_t bits) {
    return bits != 0 ? Delivery::On : Delivery::Off;
}

}  // namespace

Function::Function(FunctionSpec spec, FunctionOwner& owner, DmaSink& dma)
    : spec_(std::move(spec)),
      owner_(owner),
      dma_(dma),
      interrupts_(spec_.name, spec_.msix ? Irq::Msix : Irq::Msi,
                  spec_.msix ? spec_.msix->vectors : 1) {
    for (const BarSpec& bar : spec_.bars) bars_.at(bar.index).size = bar.size;
    build_config(config_, spec_);
    watch_config();
}

void Function::set_bar(std::uint32_t index, BarHandler handler) {
    assert(bars_.at(index).size.count != 0 && !bars_[index].handler.read);
    bars_[index].handler = std::move(handler);
}

// ---- configuration space

/// Watches the registers whose writes change the function itself. All other registers only store
/// values, or the owner serves them (ConfigSpace::claim()).
void Function::watch_config() {
    config_.on_write(PCI_COMMAND, sizeof(std::uint16_t), [this] { command_changed(); });
    config_.on_write(PCI_BASE_ADDRESS_0, PCI_CARDBUS_CIS - PCI_BASE_ADDRESS_0,
                     [this] { owner_.bars_moved(); });
    config_.on_write(VGPU_CAP_PCIE + PCI_EXP_DEVCTL, sizeof(std::uint16_t),
                     [this] { device_control_changed(); });
    const std::uint32_t control =
        spec_.msix ? VGPU_CAP_MSIX + PCI_MSIX_FLAGS : VGPU_CAP_MSI + PCI_MSI_FLAGS;
    config_.on_write(control, sizeof(std::uint16_t), [this] { interrupt_control_changed(); });
    if (spec_.has_msi)
        config_.on_write(VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO, kMsiBytes - PCI_MSI_ADDRESS_LO,
                         [this] { msi_message_changed(); });
    if (spec_.sriov)
        config_.on_write(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL, PCI_SRIOV_BAR - PCI_SRIOV_CTRL,
                         [this] { sriov_control_changed(); });
}

/// Updates everything that depends on the command register, after a write and after a reset.
void Function::command_changed() {
    const auto command = config_.get<std::uint16_t>(PCI_COMMAND);
    is_decoding_ = (command & PCI_COMMAND_MEMORY) != 0;
    is_bus_master_ = (command & PCI_COMMAND_MASTER) != 0;
    interrupts_.set_bus_master(delivery_if(command & PCI_COMMAND_MASTER));
    owner_.bars_moved();
}

std::optional<Iova> Function::bar_address(std::uint32_t index) const {
    if (!is_decoding_) return std::nullopt;
    const auto bar = std::find_if(spec_.bars.begin(), spec_.bars.end(),
                                  [&](const BarSpec& each) { return each.index == index; });
    if (bar == spec_.bars.end()) return std::nullopt;
    return Iova{pci::bar_address(config_, PCI_BASE_ADDRESS_0, *bar)};
}

/// Does a function-level reset (PCIe 6.0, 6.6.2) if the driver has set the FLR bit. The reset is
/// complete before the driver's write returns; reset_config() clears the bit.
void Function::device_control_changed() {
    constexpr std::uint32_t kRegister = VGPU_CAP_PCIE + PCI_EXP_DEVCTL;
    if ((config_.get<std::uint16_t>(kRegister) & PCI_EXP_DEVCTL_BCR_FLR) == 0) return;
    resets_++;
    reset_config();
    owner_.reset(ResetKind::FunctionLevel);
}

void Function::interrupt_control_changed() {
    if (!spec_.msix) {
        const auto control = config_.get<std::uint16_t>(VGPU_CAP_MSI + PCI_MSI_FLAGS);
        return interrupts_.set_enabled(delivery_if(control & PCI_MSI_FLAGS_ENABLE));
    }
    const auto control = config_.get<std::uint16_t>(VGPU_CAP_MSIX + PCI_MSIX_FLAGS);
    interrupts_.set_function_delivery(delivery_if(~control & PCI_MSIX_FLAGS_MASKALL));
    interrupts_.set_enabled(delivery_if(control & PCI_MSIX_FLAGS_ENABLE));
}

void Function::set_interrupt_enable(Delivery delivery) {
    const std::uint32_t at =
        spec_.msix ? VGPU_CAP_MSIX + PCI_MSIX_FLAGS : VGPU_CAP_MSI + PCI_MSI_FLAGS;
    const std::uint16_t enable = spec_.msix ? PCI_MSIX_FLAGS_ENABLE : PCI_MSI_FLAGS_ENABLE;
    const auto control = config_.get<std::uint16_t>(at);
    config_.set(at, static_cast<std::uint16_t>(delivery == Delivery::On ? control | enable
                                                                        : control & ~enable));
    interrupt_control_changed();
}

void Function::msi_message_changed() {
    const auto address = config_.get<std::uint64_t>(VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO);
    const auto data = config_.get<std::uint16_t>(VGPU_CAP_MSI + PCI_MSI_DATA_64);
    interrupts_.set_message({Iova{address}, data});
}

/// Replaces values that the capability does not allow, before a driver can read them. NumVFs goes
/// back to its earlier value if VFs are enabled or the number is too large; a page size that is not
/// one bit becomes 4 KiB.
void Function::sriov_control_changed() {
    constexpr std::uint32_t kNumVfs = VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF;
    constexpr std::uint32_t kPageSize = VGPU_ECAP_SRIOV + PCI_SRIOV_SYS_PGSIZE;
    const auto num_vfs = config_.get<std::uint16_t>(kNumVfs);
    if (sriov_.is_enabled || num_vfs > spec_.sriov->total_vfs) config_.set(kNumVfs, sriov_.num_vfs);
    const auto page_size = config_.get<std::uint32_t>(kPageSize);
    if (!std::has_single_bit(page_size)) config_.set(kPageSize, std::uint32_t{1});

    const auto control = config_.get<std::uint16_t>(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL);
    const SriovState now{.num_vfs = config_.get<std::uint16_t>(kNumVfs),
                         .is_enabled = (control & PCI_SRIOV_CTRL_VFE) != 0,
                         .is_memory_enabled = (control & PCI_SRIOV_CTRL_MSE) != 0};
    if (now == sriov_) return;
    sriov_ = now;
    owner_.sriov_changed(sriov_);
}

/// Updates what depends on registers, because ConfigSpace::reset() calls no on_write() callbacks.
void Function::reset_config() {
    config_.reset();
    interrupts_.reset();
    has_warned_undecoded_ = false;
    command_changed();
    interrupt_control_changed();
    if (spec_.has_msi) msi_message_changed();
    const SriovState before = std::exchange(sriov_, {});
    if (before != sriov_) owner_.sriov_changed(sriov_);
}

// ---- attachment

std::unique_ptr<InterruptSink> Function::sink_for(Reach reach,
                                                  const std::shared_ptr<Peer>& peer) const {
    if (reach == Reach::Bus) return std::make_unique<MessageSink>(peer);
    return std::make_unique<EventfdSink>(spec_.name, interrupts_.vectors());
}

Result<> Function::attach(std::shared_ptr<Peer> peer) {
    return attach(std::move(peer), Reach::Socket);
}

/// Sets the sink first: the owner may raise interrupts as soon as it learns of the client.
Result<> Function::attach(std::shared_ptr<Peer> peer, Reach reach) {
    if (reach_)
        return fail(EBUSY, *reach_ == Reach::Bus
                               ? "the function is attached to the host view"
                               : "the function is attached to a client of its own socket");
    // While nothing was attached, a VM may have written to the configuration through the host view.
    if (reach == Reach::Socket && spec_.detach_policy == DetachPolicy::ResetConfig) reset_config();
    interrupts_.connect(sink_for(reach, peer));
    auto attached = owner_.attached(std::move(peer));
    if (attached) {
        reach_ = reach;
        return {};
    }
    interrupts_.drop_client();
    return attached;
}

void Function::detach() {
    reach_.reset();
    interrupts_.drop_client();
    set_interrupt_enable(Delivery::Off);
    if (spec_.detach_policy == DetachPolicy::ResetConfig) reset_config();
    owner_.detached();
}

void Function::reset() {
    resets_++;
    reset_config();
    owner_.reset(ResetKind::Message);
}

// ---- interrupts and DMA

/// Error and Request exist so that clients can assign eventfds to them. softgpu never signals these
/// eventfds.
vfio_user::IrqDescription Function::irq(Irq index) {
    constexpr vfio_user::IrqDescription kUnused{.flags = vfio_user::kIrqEventfd, .count = 1};
    if (index == Irq::Error || index == Irq::Request) return kUnused;
    if (index != interrupts_.index()) return {.flags = vfio_user::kIrqEventfd, .count = 0};
    const std::uint32_t no_resize = index == Irq::Msi ? vfio_user::kIrqNoResize : 0;
    return {.flags = vfio_user::kIrqEventfd | no_resize, .count = interrupts_.vectors()};
}

/// Sets the capability's enable bit when a request assigns eventfds, and clears the bit when a
/// request disables the interrupt type, as vfio-pci does (interrupts.h).
Result<> Function::set_irqs(const vfio_user::IrqRequest& request) {
    const bool assigns = std::any_of(request.fds.begin(), request.fds.end(),
                                     [](const OwnedFd& fd) { return static_cast<bool>(fd); });
    TRY_VOID(interrupts_.apply(request));
    if (request.index != interrupts_.index()) return {};
    if (assigns) set_interrupt_enable(Delivery::On);
    if (request.count == 0) set_interrupt_enable(Delivery::Off);
    return {};
}

Result<> Function::dma_map(const vfio_user::DmaRange& range, int fd) {
    return dma_.map(range, fd);
}

void Function::dma_unmap(const vfio_user::DmaRange& range) {
    dma_.unmap(range);
}

void Function::dma_unmap_all() {
    dma_.unmap_all();
}

// ---- regions

std::uint64_t Function::region_size(std::uint32_t index) const {
    if (index < bars_.size()) return bars_[index].size.count;
    return index == kConfigRegion ? ConfigSpace::kBytes : 0;
}

vfio_user::RegionDescription Function::region(std::uint32_t index) {
    vfio_user::RegionDescription region;
    region.size = region_size(index);
    if (region.size == 0) return region;
    region.flags = vfio_user::kRegionRead | vfio_user::kRegionWrite;
    if (index >= bars_.size() || !bars_[index].handler.memory) return region;
    if (auto memory = bars_[index].handler.memory()) {
        region.fd = std::move(memory->fd);
        region.areas = std::move(memory->areas);
    }
    return region;
}

bool Function::decodes(std::uint32_t region) {
    if (is_decoding_) return true;
    if (has_warned_undecoded_) return false;
    has_warned_undecoded_ = true;
    log::warn("{}: BAR{} is accessed while the command register's memory bit is off", name(),
              region);
    return false;
}

/// Configuration space also answers while the memory bit is off; BARs do not.
std::errc Function::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) {
    if (region == kConfigRegion)
        config_.read(static_cast<std::uint32_t>(offset), out);
    else if (decodes(region))
        bar_read(region, offset, out);
    else
        std::fill(out.begin(), out.end(), kAllOnes);
    return {};
}

std::errc Function::write(std::uint32_t region, std::uint64_t offset,
                          std::span<const std::byte> data) {
    if (region == kConfigRegion)
        config_.write(static_cast<std::uint32_t>(offset), data);
    else if (decodes(region))
        bar_write(region, offset, data);
    return {};
}

/// A piece ends at the border of an area, because an access may begin before the MSI-X table and
/// end inside the table.
Function::Piece Function::piece_at(std::uint32_t bar, std::uint64_t offset,
                                   std::size_t size) const {
    struct AreaRange {
        Area area;
        std::uint64_t begin;
        std::uint64_t end;
    };
    const std::uint64_t to_page_end = kPageBytes - offset % kPageBytes;
    Piece piece{Area::Handler, offset, std::min<std::size_t>(size, to_page_end)};
    if (!spec_.msix || spec_.msix->bar != bar) return piece;
    const std::uint64_t table_bytes =
        std::uint64_t{interrupts_.vectors()} * Interrupts::kTableEntryBytes;
    const MsixSpec& msix = *spec_.msix;
    for (const AreaRange& range :
         {AreaRange{Area::MsixTable, msix.table_offset, msix.table_offset + table_bytes},
          AreaRange{Area::MsixPending, msix.pba_offset, msix.pba_offset + kPendingBytes}}) {
        if (offset >= range.begin && offset < range.end)
            return {range.area, offset - range.begin,
                    std::min<std::size_t>(size, range.end - offset)};
        if (offset < range.begin)
            piece.size = std::min<std::size_t>(piece.size, range.begin - offset);
    }
    return piece;
}

void Function::handler_read(std::uint32_t bar, std::uint64_t offset, std::span<std::byte> out) {
    if (bars_[bar].handler.read) return bars_[bar].handler.read(offset, out);
    std::fill(out.begin(), out.end(), kAllOnes);
}

void Function::bar_read(std::uint32_t bar, std::uint64_t offset, std::span<std::byte> out) {
    if (config_.is_absent()) {
        std::fill(out.begin(), out.end(), kAllOnes);
        return;
    }
    while (!out.empty()) {
        const Piece piece = piece_at(bar, offset, out.size());
        const auto part = out.first(piece.size);
        switch (piece.area) {
            case Area::MsixTable:
                interrupts_.read_table(static_cast<std::uint32_t>(piece.offset), part);
                break;
            case Area::MsixPending:
                interrupts_.read_pending(static_cast<std::uint32_t>(piece.offset), part);
                break;
            case Area::Handler:
                handler_read(bar, piece.offset, part);
                break;
        }
        offset += piece.size;
        out = out.subspan(piece.size);
    }
}

void Function::bar_write(std::uint32_t bar, std::uint64_t offset, std::span<const std::byte> data) {
    if (config_.is_absent()) return;
    while (!data.empty()) {
        const Piece piece = piece_at(bar, offset, data.size());
        const auto part = data.first(piece.size);
        if (piece.area == Area::MsixTable)
            interrupts_.write_table(static_cast<std::uint32_t>(piece.offset), part);
        if (piece.area == Area::Handler && bars_[bar].handler.write)
            bars_[bar].handler.write(piece.offset, part);
        offset += piece.size;
        data = data.subspan(piece.size);
    }
}

}  // namespace vgpu::softgpu::pci
