// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/host_view.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <bit>

#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/pci/capabilities.h"

namespace vgpu::softgpu::host_view {
namespace {

using vfio_user::Irq;

constexpr std::uint32_t kConfigRegion = static_cast<std::uint32_t>(vfio_user::Region::Config);
constexpr std::byte kAllOnes{0xff};
/// The smallest BAR of root port, PF and VFs is at least this large. BARs are aligned to their
/// size, so they begin and end only at multiples of kDecodeBytes.
constexpr std::uint64_t kDecodeBytes = 4096;
constexpr std::uint32_t kPfRoutingId = 0;
constexpr std::uint32_t kVfBars = VGPU_ECAP_SRIOV + PCI_SRIOV_BAR;

/// Bus, function and register to which an offset in the configuration window (ECAM) leads.
struct ConfigAddress {
    std::uint32_t bus;
    std::uint32_t devfn;
    std::uint32_t offset;

    explicit ConfigAddress(std::uint64_t window_offset)
        : bus(low32(window_offset >> VGPU_ECAM_BUS_SHIFT)),
          devfn(low32(bits(window_offset, VGPU_ECAM_FUNCTION_SHIFT,
                           VGPU_ECAM_BUS_SHIFT - VGPU_ECAM_FUNCTION_SHIFT))),
          offset(low32(bits(window_offset, 0, VGPU_ECAM_FUNCTION_SHIFT))) {}
    [[nodiscard]] bool is_root_port() const { return bus == 0 && devfn == 0; }
};

/// Number of bytes of an access at `offset` that lie in the first dword.
std::size_t bytes_in_dword(std::uint64_t offset, std::size_t size) {
    constexpr std::size_t kDword = sizeof(std::uint32_t);
    return std::min(size, kDword - offset % kDword);
}

/// Size of the endpoint's window into 64-bit memory: a power of two, at least 16 GiB and at least
/// twice the size of all BARs of PF and VFs. The factor of two is necessary because the kernel
/// aligns each array of VF BARs and rounds the root port's windows up.
Bytes high_window(const pci::FunctionSpec& pf) {
    constexpr Bytes kMin = 16384_MiB;
    std::uint64_t sum = 0;
    for (const pci::BarSpec& bar : pf.bars) sum += bar.size.count;
    for (const pci::BarSpec& bar : pf.sriov->vf_bars) sum += bar.size.count * pf.sriov->total_vfs;
    return Bytes{std::max(kMin.count, std::bit_ceil(sum * 2))};
}

}  // namespace

HostView::HostView(EndpointKind kind, pci::Function& pf, const std::vector<pci::Function*>& vfs)
    : pf_(pf),
      sriov_(*pf.spec().sriov),
      endpoint_(kind, high_window(pf.spec())),
      root_port_([this] { reset_bus(); }) {
    std::uint32_t routing_id = sriov_.first_vf_offset;
    for (pci::Function* vf : vfs) {
        vfs_.emplace_back(*vf, routing_id, attachments_);
        routing_id += sriov_.vf_stride;
    }
}

// ---- attachment

Result<> HostView::attach(std::shared_ptr<Peer> peer) {
    attachments_.open(std::move(peer));
    attach_pf();
    return {};
}

void HostView::attach_pf() {
    const Result<> attached = attachments_.attach(pf_, kPfRoutingId);
    if (!attached) log::warn("host view: the VM finds no PF: {}", attached.error().message);
}

/// The VM has disconnected. The next VM must find PF, root port and endpoint as after power-on.
void HostView::detach() {
    reset_bus();
    attachments_.close();
    root_port_.reset();
    endpoint_.reset();
}

void HostView::detach_vfs() {
    for (BusVf& vf : vfs_) vf.detach();
}

void HostView::reset_bus() {
    detach_vfs();
    if (has_pf()) pf_.reset();
}

void HostView::reset() {
    reset_bus();
    attachments_.iommu().reset();
    root_port_.reset();
    endpoint_.reset();
    if (!has_pf()) attach_pf();
}

// ---- the endpoint as a device

vfio_user::RegionDescription HostView::region(std::uint32_t index) {
    vfio_user::RegionDescription region;
    region.size = region_size(index);
    if (region.size != 0) region.flags = vfio_user::kRegionRead | vfio_user::kRegionWrite;
    return region;
}

std::uint64_t HostView::region_size(std::uint32_t index) const {
    return index == kConfigRegion ? pci::ConfigSpace::kBytes : endpoint_.bar_size(index);
}

vfio_user::IrqDescription HostView::irq(Irq index) {
    const bool is_known = index == Irq::Error || index == Irq::Request;
    return {.flags = vfio_user::kIrqEventfd, .count = is_known ? 1u : 0u};
}

/// Accepts eventfds for the endpoint's error and request interrupts, but never signals them.
Result<> HostView::set_irqs(const vfio_user::IrqRequest&) {
    return {};
}

Result<> HostView::dma_map(const vfio_user::DmaRange& range, int fd) {
    return attachments_.map(range, fd);
}

void HostView::dma_unmap(const vfio_user::DmaRange& range) {
    attachments_.unmap(range);
}

void HostView::dma_unmap_all() {
    attachments_.unmap_all();
}

std::errc HostView::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) {
    if (region == kConfigRegion)
        endpoint_.config().read(low32(offset), out);
    else if (region == VGPU_HOST_VIEW_BAR_CONFIG)
        config_read(offset, out);
    else
        memory_read(endpoint_.bar_address(region) + offset, out);
    return {};
}

std::errc HostView::write(std::uint32_t region, std::uint64_t offset,
                          std::span<const std::byte> data) {
    if (region == kConfigRegion)
        endpoint_.config().write(low32(offset), data);
    else if (region == VGPU_HOST_VIEW_BAR_CONFIG)
        config_write(offset, data);
    else
        memory_write(endpoint_.bar_address(region) + offset, data);
    return {};
}

// ---- configuration window

BusVf* HostView::enabled_vf(std::uint64_t number) {
    const pci::SriovState& state = pf_.sriov();
    const std::uint64_t count = std::min<std::uint64_t>(state.num_vfs, vfs_.size());
    return has_pf() && state.is_enabled && number < count ? &vfs_[number] : nullptr;
}

BusVf* HostView::vf_with_routing_id(std::optional<std::uint32_t> routing_id) {
    if (!routing_id || *routing_id < sriov_.first_vf_offset) return nullptr;
    const std::uint32_t from_first = *routing_id - sriov_.first_vf_offset;
    return from_first % sriov_.vf_stride == 0 ? enabled_vf(from_first / sriov_.vf_stride) : nullptr;
}

/// Splits the access into dwords, because it may extend into the configuration space of another
/// function.
void HostView::config_read(std::uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const auto part = out.first(bytes_in_dword(offset, out.size()));
        const ConfigAddress at(offset);
        const auto routing_id = root_port_.routing_id_of(at.bus, at.devfn);
        std::ranges::fill(part, kAllOnes);
        if (at.is_root_port())
            root_port_.config().read(at.offset, part);
        else if (routing_id == kPfRoutingId && has_pf())
            pf_.config().read(at.offset, part);
        else if (BusVf* vf = vf_with_routing_id(routing_id); vf != nullptr)
            vf->config_read(at.offset, part);
        offset += part.size();
        out = out.subspan(part.size());
    }
}

void HostView::config_write(std::uint64_t offset, std::span<const std::byte> data) {
    while (!data.empty()) {
        const auto part = data.first(bytes_in_dword(offset, data.size()));
        const ConfigAddress at(offset);
        const auto routing_id = root_port_.routing_id_of(at.bus, at.devfn);
        if (at.is_root_port())
            root_port_.config().write(at.offset, part);
        else if (routing_id == kPfRoutingId && has_pf())
            write_pf(at.offset, part);
        else if (BusVf* vf = vf_with_routing_id(routing_id); vf != nullptr)
            vf->config_write(at.offset, part);
        offset += part.size();
        data = data.subspan(part.size());
    }
}

/// A write to NumVFs or VF Enable, or an FLR of the PF, may disable VFs.
void HostView::write_pf(std::uint32_t offset, std::span<const std::byte> data) {
    pf_.config().write(offset, data);
    for (std::size_t i = 0; i < vfs_.size(); i++)
        if (enabled_vf(i) == nullptr) vfs_[i].detach();
}

// ---- memory windows

std::optional<HostView::Target> HostView::decode_pf(std::uint64_t address) {
    const auto command = pf_.config().get<std::uint16_t>(PCI_COMMAND);
    if ((command & PCI_COMMAND_MEMORY) == 0) return std::nullopt;
    for (const pci::BarSpec& bar : pf_.spec().bars) {
        const std::uint64_t offset =
            address - pci::bar_address(pf_.config(), PCI_BASE_ADDRESS_0, bar);
        if (offset < bar.size.count)
            return Target{.function = &pf_,
                          .bar = bar.index,
                          .offset = offset,
                          .left = bar.size.count - offset};
    }
    return std::nullopt;
}

/// In each BAR of the SR-IOV capability, VF n answers at base + (n - 1) * size (PCIe 6.0,
/// 9.3.3.14).
std::optional<HostView::Target> HostView::decode_vfs(std::uint64_t address) {
    if (!pf_.sriov().is_memory_enabled) return std::nullopt;
    for (const pci::BarSpec& bar : sriov_.vf_bars) {
        const std::uint64_t offset = address - pci::bar_address(pf_.config(), kVfBars, bar);
        BusVf* vf = enabled_vf(offset / bar.size.count);
        if (vf == nullptr) continue;
        const std::uint64_t inside = offset % bar.size.count;
        return Target{.function = vf->attached_function(),
                      .bar = bar.index,
                      .offset = inside,
                      .left = bar.size.count - inside};
    }
    return std::nullopt;
}

HostView::Target HostView::decode(std::uint64_t address) {
    const std::uint64_t to_boundary = kDecodeBytes - address % kDecodeBytes;
    if (const auto offset = root_port_.own_bar_offset(address))
        return {.is_iommu = true, .offset = *offset, .left = to_boundary};
    const std::uint64_t forwarded = root_port_.forwarded_bytes(address);
    std::optional<Target> target;
    if (forwarded != 0 && has_pf()) target = decode_pf(address);
    if (forwarded != 0 && has_pf() && !target) target = decode_vfs(address);
    if (!target) return {.left = to_boundary};
    target->left = std::min(target->left, forwarded);
    return *target;
}

void HostView::memory_read(std::uint64_t address, std::span<std::byte> out) {
    while (!out.empty()) {
        const Target target = decode(address);
        const auto part = out.first(std::min<std::uint64_t>(out.size(), target.left));
        if (target.is_iommu)
            attachments_.iommu().read(target.offset, part);
        else if (target.function != nullptr)
            target.function->bar_read(target.bar, target.offset, part);
        else
            std::ranges::fill(part, kAllOnes);
        address += part.size();
        out = out.subspan(part.size());
    }
}

void HostView::memory_write(std::uint64_t address, std::span<const std::byte> data) {
    while (!data.empty()) {
        const Target target = decode(address);
        const auto part = data.first(std::min<std::uint64_t>(data.size(), target.left));
        if (target.is_iommu)
            attachments_.iommu().write(target.offset, part);
        else if (target.function != nullptr)
            target.function->bar_write(target.bar, target.offset, part);
        address += part.size();
        data = data.subspan(part.size());
    }
}

}  // namespace vgpu::softgpu::host_view
