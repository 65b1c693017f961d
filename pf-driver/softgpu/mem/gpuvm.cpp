// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/gpuvm.h"

#include <algorithm>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::mem {

namespace {

constexpr std::uint64_t kVaMask = (1ull << GPUVM_VA_BITS) - 1;
constexpr std::uint64_t kVaTop = 0xffff;  // bits 63:48 of a sign-extended address
constexpr std::uint64_t kEntryBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kPageMask = Port::kPageBytes - 1;
/// Marks an entry of process_roots_ that MAP_PROCESS set, so that even a root of 0 counts. Not an
/// address bit.
constexpr std::uint64_t kIsOverridden = 1ull << 63;

constexpr std::uint8_t kAllAccess =
    static_cast<std::uint8_t>(GPUVM_PTE_EXECUTABLE | GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE);
static_assert(static_cast<std::uint64_t>(Access::Execute) == GPUVM_PTE_EXECUTABLE);
static_assert(static_cast<std::uint64_t>(Access::Read) == GPUVM_PTE_READABLE);
static_assert(static_cast<std::uint64_t>(Access::Write) == GPUVM_PTE_WRITEABLE);

/// Registers of one hub. `control` is the first register of an array with a register for each
/// context; `root`, `start` and `end` begin arrays with a LO/HI pair for each context. `request`
/// and `acknowledge` begin arrays with a register for each invalidation engine. Both hubs have the
/// same layout.
struct HubRegisters {
    std::uint32_t control;
    std::uint32_t root;
    std::uint32_t start;
    std::uint32_t end;
    std::uint32_t request;
    std::uint32_t acknowledge;
    std::uint32_t fault_status;
    std::uint32_t fault_page_lo;
    std::uint32_t fault_page_hi;
    std::uint32_t fb_top;
    ih_client client;
    std::uint8_t vmid_type;
};

/// Bit in the VMID byte of an IH entry; set if the MM hub reports the fault.
constexpr std::uint8_t kMmhubVmid = 0x80;

constexpr std::array<HubRegisters, GPUVM_HUBS> kHubs = {{
    {REG_GC_VM_CONTEXT0_CNTL, REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32,
     REG_GC_VM_CONTEXT0_PAGE_TABLE_START_ADDR_LO32, REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32,
     REG_GC_VM_INVALIDATE_ENG0_REQ, REG_GC_VM_INVALIDATE_ENG0_ACK,
     REG_GC_VM_L2_PROTECTION_FAULT_STATUS, REG_GC_VM_L2_PROTECTION_FAULT_ADDR_LO32,
     REG_GC_VM_L2_PROTECTION_FAULT_ADDR_HI32, REG_GC_MC_VM_FB_LOCATION_TOP, IH_CLIENT_UTCL2, 0},
    {REG_MMHUB_VM_CONTEXT0_CNTL, REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32,
     REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_START_ADDR_LO32,
     REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32, REG_MMHUB_VM_INVALIDATE_ENG0_REQ,
     REG_MMHUB_VM_INVALIDATE_ENG0_ACK, REG_MMHUB_VM_L2_PROTECTION_FAULT_STATUS,
     REG_MMHUB_VM_L2_PROTECTION_FAULT_ADDR_LO32, REG_MMHUB_VM_L2_PROTECTION_FAULT_ADDR_HI32,
     REG_MMHUB_MC_VM_FB_LOCATION_TOP, IH_CLIENT_VMC, kMmhubVmid},
}};

const HubRegisters& registers_of(Hub hub) {
    return kHubs[static_cast<unsigned>(hub)];
}

/// The 64-bit value of a LO/HI pair of registers; HI follows LO.
std::uint64_t get_pair(const regs::RegisterFile& regs, std::uint32_t low) {
    return join(regs.get(RegisterIndex{low}), regs.get(RegisterIndex{low + 1}));
}

RegisterIndex pasid_register(Vmid vmid) {
    return RegisterIndex{REG_ATHUB_ATC_VMID0_PASID_MAPPING + std::uint32_t{raw(vmid)}};
}

/// VM_L2_PROTECTION_FAULT_STATUS.PERMISSION_FAULTS: 2, 4 or 8 if the permission to read, write or
/// execute is missing; 1 for any other fault.
std::uint32_t permission_bits(const Fault& fault) {
    if (fault.kind != FaultKind::Permission) return 1;
    if (fault.access == Access::Read) return 2;
    return fault.access == Access::Write ? 4 : 8;
}

}  // namespace

/// A Port of one VMID through one hub.
class GpuVm::HubPort final : public Port {
public:
    HubPort(GpuVm& gpuvm, Hub hub, Vmid vmid)
        : Port(gpuvm.epoch(vmid)), gpuvm_(gpuvm), hub_(hub), vmid_(vmid) {
        const std::lock_guard lock(gpuvm_.ports_mutex_);
        gpuvm_.ports_.insert(this);
    }
    ~HubPort() override {
        const std::lock_guard lock(gpuvm_.ports_mutex_);
        gpuvm_.ports_.erase(this);
    }

    bool supports_atomics(GpuVa va) override {
        const Location at = locate(va, Access::Write);
        return !at.is_system || !gpuvm_.system_.is_own_bar(Iova{at.address});
    }

private:
    /// The cached translation of a range of more than 4 KiB that one page table entry maps.
    /// Sequential accesses then walk the page tables once for a range of 2 MiB and at most kRanges
    /// times for a larger range, not once per 4 KiB page. Valid while the VMID's epoch equals
    /// `epoch`.
    struct Range {
        std::uint64_t start = 0;
        std::uint64_t epoch = 0;  ///< 0: empty; epochs start at 1
        Location at;              ///< location of the first page of the range
    };
    static constexpr std::size_t kRanges = 16;
    static constexpr unsigned kHugePageShift = GPUVM_PAGE_SHIFT + GPUVM_LEVEL_BITS;

    /// locate() with the cache of ranges. Reads the epoch before the walk, so that an invalidation
    /// during the walk makes the Range stale.
    Location find(GpuVa va, Access access) {
        const std::uint64_t epoch = gpuvm_.epoch(vmid_).load(std::memory_order_acquire);
        Range& range = ranges_[(raw(va) >> kHugePageShift) % kRanges];
        if (range.epoch == epoch && (raw(va) & ~range.at.range_mask) == range.start) {
            Location at = range.at;
            at.address += raw(va) & range.at.range_mask & ~kPageMask;
            return checked(at, va, access);
        }
        const Location at = gpuvm_.locate(hub_, vmid_, va, access);
        if (at.fault.kind != FaultKind::None || at.is_prt || at.range_mask <= kPageMask) return at;
        range = {raw(va) & ~at.range_mask, epoch, at};
        range.at.address -= raw(va) & at.range_mask & ~kPageMask;
        return at;
    }

    Translation walk(GpuVa va, Access access) override {
        const Location at = find(va, access);
        if (at.fault.kind != FaultKind::None) return {nullptr, 0, at.fault};
        if (at.is_prt) return {};
        if (at.is_system) return system_page(at, va, access);
        std::byte* const host = gpuvm_.vram_.host(VfOffset{at.address});
        if (host == nullptr) return {nullptr, 0, {FaultKind::OutOfRange, access, va}};
        return {host, at.access, {}};
    }

    bool may_reach(const std::byte* host) const override { return gpuvm_.vram_.may_reach(host); }

    /// Both the page table entry and the client's DMA mapping must permit the access.
    Translation system_page(const Location& at, GpuVa va, Access access) const {
        const SystemMemory::Page page = gpuvm_.system_.find(Iova{at.address});
        if (!page.is_mapped) return {nullptr, 0, {FaultKind::OutOfRange, access, va}};
        const std::uint8_t allowed = at.access & bus_access(page.access);
        if ((allowed & static_cast<std::uint8_t>(access)) == 0)
            return {nullptr, 0, {FaultKind::Permission, access, va}};
        return {page.host, allowed, {}};
    }

    /// A client cannot grant Execute. Code fetches are bus reads, so Read includes Execute.
    static std::uint8_t bus_access(std::uint8_t granted) {
        const bool is_readable = (granted & static_cast<std::uint8_t>(Access::Read)) != 0;
        return is_readable ? granted | static_cast<std::uint8_t>(Access::Execute) : granted;
    }

    /// Makes a Hold, because the walk reads page tables in VRAM, and another thread may release the
    /// VRAM meanwhile.
    Location locate(GpuVa va, Access access) {
        const Hold hold(*this);
        return gpuvm_.locate(hub_, vmid_, va, access);
    }

    /// Translates again, because the TLB does not keep pages without a host address.
    bool read_indirect(GpuVa va, std::span<std::byte> out) override {
        const Location at = locate(va, Access::Read);
        if (at.is_prt) {
            std::fill(out.begin(), out.end(), std::byte{0});
            return true;
        }
        if (at.fault.kind != FaultKind::None || !at.is_system) return false;
        return gpuvm_.system_.read(Iova{at.address + (raw(va) & kPageMask)}, out);
    }

    bool write_indirect(GpuVa va, std::span<const std::byte> data) override {
        const Location at = locate(va, Access::Write);
        if (at.is_prt) return true;
        if (at.fault.kind != FaultKind::None || !at.is_system) return false;
        return gpuvm_.system_.write(Iova{at.address + (raw(va) & kPageMask)}, data);
    }

    GpuVm& gpuvm_;
    const Hub hub_;
    const Vmid vmid_;
    std::array<Range, kRanges> ranges_{};
};

GpuVm::GpuVm(regs::RegisterFile& regs, VfVram& vram, SystemMemory& system)
    : regs_(regs), vram_(vram), system_(system) {
    for (const Hub hub : {Hub::Gfx, Hub::Mm}) {
        claim_hub(hub);
        refresh_contexts(hub);
    }
}

GpuVm::~GpuVm() = default;

void GpuVm::claim_hub(Hub hub) {
    const HubRegisters& at = registers_of(hub);
    const auto refresh = [this, hub](RegisterIndex, std::uint32_t) { refresh_contexts(hub); };
    regs_.claim(RegisterIndex{at.control}, kVmids, {}, refresh);
    for (const std::uint32_t pairs : {at.root, at.start, at.end})
        regs_.claim(RegisterIndex{pairs}, 2 * kVmids, {}, refresh);
    regs_.claim(RegisterIndex{at.request}, GPUVM_INVALIDATE_ENGINES, {},
                [this, hub, first = at.request](RegisterIndex index, std::uint32_t value) {
                    on_invalidate_request(hub, raw(index) - first, value);
                });
}

/// Copies all contexts of the hub, because register writes are rare and the copy has only a few
/// hundred bytes. A walk on another thread may see half of a change. This is harmless: drivers
/// invalidate after a change, which ends every translation that such a walk has cached.
void GpuVm::refresh_contexts(Hub hub) {
    const HubRegisters& at = registers_of(hub);
    for (std::uint32_t i = 0; i < kVmids; ++i) {
        Context& target = context(hub, Vmid{static_cast<std::uint8_t>(i)});
        target.control = regs_.get(RegisterIndex{at.control + i});
        target.root = get_pair(regs_, at.root + 2 * i);
        target.first_page = get_pair(regs_, at.start + 2 * i);
        target.last_page = get_pair(regs_, at.end + 2 * i);
    }
}

/// Completes the invalidation and acknowledges it before the guest's register write returns. The
/// cost does not depend on the number of cached entries, because ports only compare epochs.
void GpuVm::on_invalidate_request(Hub hub, std::uint32_t engine, std::uint32_t request) {
    const std::uint32_t vmids = HW_GET(VM_INVALIDATE_REQ, VMIDS, request);
    flush(static_cast<std::uint16_t>(vmids));
    ++state_.invalidations;
    if (HW_GET(VM_INVALIDATE_REQ, CLEAR_FAULT, request) != 0) clear_fault(hub);
    regs_.set(RegisterIndex{registers_of(hub).acknowledge + engine}, vmids);
}

void GpuVm::set_root(Vmid vmid, std::uint64_t root) {
    if (raw(vmid) == 0 || raw(vmid) >= kVmids) return;
    state_.process_root[raw(vmid)] = root;
    state_.process_mask |= 1ull << raw(vmid);
    process_roots_[raw(vmid)] = root | kIsOverridden;
    invalidate(static_cast<std::uint16_t>(1u << raw(vmid)));
}

void GpuVm::set_pasid(Vmid vmid, std::uint16_t pasid) {
    if (raw(vmid) >= kVmids) return;
    regs_.set(pasid_register(vmid), HW_PREP(ATC_VMID_PASID_MAPPING, PASID, pasid) |
                                        HW_PREP(ATC_VMID_PASID_MAPPING, VALID, 1));
}

std::uint16_t GpuVm::pasid_of(Vmid vmid) const {
    if (raw(vmid) >= kVmids) return 0;
    const std::uint32_t mapping = regs_.get(pasid_register(vmid));
    if (HW_GET(ATC_VMID_PASID_MAPPING, VALID, mapping) == 0) return 0;
    return static_cast<std::uint16_t>(HW_GET(ATC_VMID_PASID_MAPPING, PASID, mapping));
}

void GpuVm::invalidate(std::uint16_t vmid_mask) {
    for (unsigned i = 0; i < kVmids; ++i)
        if (bit(vmid_mask, i)) epochs_[i].value.fetch_add(1, std::memory_order_acq_rel);
}

void GpuVm::invalidate_pasid(std::uint16_t pasid) {
    std::uint16_t vmids = 0;
    for (std::uint8_t i = 0; i < kVmids; ++i)
        if (pasid != 0 && pasid_of(Vmid{i}) == pasid)
            vmids = static_cast<std::uint16_t>(vmids | 1u << i);
    flush(vmids);
}

void GpuVm::flush(std::uint16_t vmid_mask) {
    invalidate(vmid_mask);
    if (vmid_mask != 0 && on_invalidated_) on_invalidated_(vmid_mask);
}

void GpuVm::invalidate_all() {
    invalidate(0xffff);
}

void GpuVm::vram_changed() {
    const std::uint64_t size = vram_.size().count;
    const std::uint64_t last = kFbBase + (size == 0 ? 0 : size - 1);
    for (const HubRegisters& at : kHubs)
        regs_.set(RegisterIndex{at.fb_top},
                  static_cast<std::uint32_t>(last >> GPUVM_FB_LOCATION_SHIFT));
    invalidate_all();
}

std::unique_ptr<Port> GpuVm::make_port(Vmid vmid, Hub hub) {
    return std::make_unique<HubPort>(*this, hub,
                                     Vmid{static_cast<std::uint8_t>(raw(vmid) % kVmids)});
}

void GpuVm::await_holds() const {
    const std::lock_guard lock(ports_mutex_);
    for (const Port* port : ports_) port->await_hold();
}

/// Checks permissions last, so that a missing page is reported as NotPresent, not as Permission.
GpuVm::Location GpuVm::locate(Hub hub, Vmid vmid, GpuVa va, Access access) const {
    const std::uint64_t top = raw(va) >> GPUVM_VA_BITS;
    if (top != 0 && top != kVaTop) return {{FaultKind::NotCanonical, access, va}};
    const std::uint64_t address = raw(va) & kVaMask;
    const Context& from = context(hub, vmid);
    return checked(
        raw(vmid) == 0 ? locate_kernel(from, address) : locate_process(from, vmid, address), va,
        access);
}

GpuVm::Location GpuVm::checked(Location at, GpuVa va, Access access) {
    if (at.fault.kind == FaultKind::None && !at.is_prt &&
        (at.access & static_cast<std::uint8_t>(access)) == 0)
        at.fault.kind = FaultKind::Permission;
    at.fault.access = access;
    at.fault.va = va;
    return at;
}

GpuVm::Location GpuVm::locate_kernel(const Context& from, std::uint64_t va) const {
    if (va >= kFbBase && va - kFbBase < vram_.size().count)
        return {{}, false, false, (va - kFbBase) & ~kPageMask, kAllAccess, 0};
    return walk_context(from, from.root, va);
}

GpuVm::Location GpuVm::locate_process(const Context& from, Vmid vmid, std::uint64_t va) const {
    const std::uint64_t process_root = process_roots_[raw(vmid)];
    return walk_context(from, process_root != 0 ? process_root : from.root.load(), va);
}

GpuVm::Location GpuVm::walk_context(const Context& from, std::uint64_t root,
                                    std::uint64_t va) const {
    const std::uint32_t control = from.control;
    const std::uint64_t page = va >> GPUVM_PAGE_SHIFT;
    const std::uint64_t first_page = from.first_page;
    const bool is_on = HW_GET(VM_CONTEXT_CNTL, ENABLE, control) != 0;
    const bool is_in_range = page >= first_page && page <= from.last_page;
    if (!is_on || !is_in_range || (root & GPUVM_ROOT_VALID) == 0) return {{FaultKind::NotPresent}};
    const unsigned depth = HW_GET(VM_CONTEXT_CNTL, DEPTH, control);
    if (depth == 0) return walk_flat(root, page - first_page);
    return walk_tables(root, depth, va);
}

GpuVm::Location GpuVm::walk_flat(std::uint64_t root, std::uint64_t index) const {
    const auto entry = read_entry(root, index);
    if (!entry) return {{FaultKind::OutOfRange}};
    return leaf(*entry, 0, 0);
}

/// A PDE with the bit GPUVM_PDE_PTE maps memory itself: 2 MiB or more, depending on its level.
GpuVm::Location GpuVm::walk_tables(std::uint64_t root, unsigned depth, std::uint64_t va) const {
    std::uint64_t entry = root;
    for (unsigned level = depth + 1; level-- > 0;) {
        const unsigned shift = GPUVM_PAGE_SHIFT + GPUVM_LEVEL_BITS * level;
        const auto next = read_entry(entry, bits(va, shift, GPUVM_LEVEL_BITS));
        if (!next) return {{FaultKind::OutOfRange}};
        entry = *next;
        const bool is_last = level == 0 || (entry & GPUVM_PDE_PTE) != 0;
        if (is_last) return leaf(entry, va, (1ull << shift) - 1);
        if ((entry & GPUVM_PTE_VALID) == 0) return {{FaultKind::NotPresent}};
    }
    return {{FaultKind::NotPresent}};
}

/// The 4 KiB page of `va` in the range that `entry` maps, or a fault. `mask` is the size of the
/// range minus 1. Adds the offset to the address of `entry` instead of combining bits, because only
/// the virtual address of a range is aligned to its size: amdgpu maps any 2 MiB of contiguous
/// system pages by one PDE, even if their bus address is aligned only to 4 KiB.
GpuVm::Location GpuVm::leaf(std::uint64_t entry, std::uint64_t va, std::uint64_t mask) {
    if ((entry & GPUVM_PTE_VALID) == 0) {
        const bool is_prt = (entry & GPUVM_PTE_PRT) != 0;
        return {{is_prt ? FaultKind::None : FaultKind::NotPresent}, false, is_prt, 0, 0, 0};
    }
    const std::uint64_t first = entry & GPUVM_PTE_ADDR_MASK;
    return {{},
            (entry & GPUVM_PTE_SYSTEM) != 0,
            false,
            first + (va & mask & ~kPageMask),
            static_cast<std::uint8_t>(entry & kAllAccess),
            mask};
}

/// Reads an entry in VRAM by one atomic load, because the guest's CPUs or SDMA may write the entry
/// at the same time.
std::optional<std::uint64_t> GpuVm::read_entry(std::uint64_t table, std::uint64_t index) const {
    const std::uint64_t address = (table & GPUVM_PDE_ADDR_MASK) + index * kEntryBytes;
    if ((table & GPUVM_PTE_SYSTEM) != 0) {
        std::uint64_t entry = 0;
        if (!system_.read(Iova{address}, bytes_of(entry))) return std::nullopt;
        return entry;
    }
    std::byte* const host = vram_.host(VfOffset{address});
    if (host == nullptr) return std::nullopt;
    return shared_at<std::uint64_t>(host).load(std::memory_order_relaxed);
}

/// The registers keep the first fault until the guest clears it. Every fault gets an IH entry.
ih_iv_entry GpuVm::record_fault(const VmFault& fault) {
    const HubRegisters& at = registers_of(fault.hub);
    const std::uint64_t page = (raw(fault.fault.va) & kVaMask) >> GPUVM_PAGE_SHIFT;
    const bool is_write = fault.fault.access == Access::Write;
    ++state_.faults;
    const RegisterIndex status{at.fault_status};
    if (const std::uint32_t earlier = regs_.get(status); earlier != 0) {
        regs_.set(status, earlier | HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, MORE_FAULTS, 1));
    } else {
        const bool is_mapping = fault.fault.kind == FaultKind::OutOfRange;
        regs_.set(status, HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, PERMISSION_FAULTS,
                                  permission_bits(fault.fault)) |
                              HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, MAPPING_ERROR, is_mapping) |
                              HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, RW, is_write) |
                              HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, VMID, raw(fault.vmid)) |
                              HW_PREP(VM_L2_PROTECTION_FAULT_STATUS, VF, 1));
        regs_.set(RegisterIndex{at.fault_page_lo}, low32(page));
        regs_.set(RegisterIndex{at.fault_page_hi}, high32(page));
    }
    ih_iv_entry entry{};
    entry.client_id = static_cast<std::uint8_t>(at.client);
    entry.source_id = IH_SOURCE_VM_FAULT;
    entry.ring_id = static_cast<std::uint8_t>(
        (fault.fault.kind == FaultKind::Permission ? 0u : IH_FAULT_RING_VALID) |
        (is_write ? IH_FAULT_RING_WRITE : IH_FAULT_RING_READ));
    entry.vmid = static_cast<std::uint8_t>(raw(fault.vmid) | at.vmid_type);
    entry.pasid = fault.pasid;
    entry.source_data[0] = low32(page);
    entry.source_data[1] =
        (high32(page) & IH_FAULT_DATA1_VA_HI_MASK) | (is_write ? IH_FAULT_DATA1_WRITE : 0u);
    return entry;
}

void GpuVm::clear_fault(Hub hub) {
    const HubRegisters& at = registers_of(hub);
    for (const std::uint32_t which : {at.fault_status, at.fault_page_lo, at.fault_page_hi})
        regs_.set(RegisterIndex{which}, 0);
}

void GpuVm::publish_roots() {
    for (unsigned i = 0; i < kVmids; ++i)
        process_roots_[i] =
            bit(state_.process_mask, i) ? state_.process_root[i] | kIsOverridden : 0;
}

void GpuVm::reset() {
    state_ = {};
    publish_roots();
    for (const Hub hub : {Hub::Gfx, Hub::Mm}) refresh_contexts(hub);
    invalidate_all();
}

void GpuVm::save(Writer& out) const {
    out.value(state_);
}

/// Only VMIDs 1 to 15 can have a process: any other bit in the mask makes the stream invalid.
Result<> GpuVm::load(Reader& in) {
    State state;
    Result<> read = in.value(state);
    if (read && (state.process_mask & ~0xfffeull) != 0)
        read = fail(EPROTO, "state stream holds a process in a VMID that cannot have one");
    state_ = read ? state : State{};
    publish_roots();
    for (const Hub hub : {Hub::Gfx, Hub::Mm}) refresh_contexts(hub);
    invalidate_all();
    return read;
}

Port& PortSet::operator()(Vmid vmid) {
    auto& port = ports_[raw(vmid) % kVmids];
    if (!port) port = gpuvm_.make_port(vmid, hub_);
    return *port;
}

}  // namespace vgpu::softgpu::mem
