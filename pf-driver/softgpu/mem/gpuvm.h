// SPDX-License-Identifier: MIT
//
// GpuVm: the 16 address spaces (VMIDs) of one VF. Two hubs translate addresses: the GFX hub serves
// CP, waves and IH; the MM hub serves SDMA, video and PSP. In each hub, a VMID has a context: the
// registers VM_CONTEXTn_*, which describe the VMID's page tables. The packet MAP_PROCESS overrides
// the root of the page tables in both contexts of a VMID. Blocks access memory through Ports; each
// Port serves one VMID through one hub. Each VMID has an epoch, a counter. A Port does not use a
// cached translation after the VMID's epoch has changed. These events change the epoch: a write of
// VM_INVALIDATE_ENGn_REQ, an invalidation by PASID, a MAP_PROCESS, a DMA unmap, a change of BARs or
// of bus mastering, a commit or release of VRAM, a reset, and load(). Until the epoch changes, a
// changed page table entry may have no effect, as on hardware.
//
// An address in a guest's page table is either a VF VRAM offset, which the VF page table translates
// (VfVram), or a bus address (SystemMemory). A bus address reaches only memory that the client,
// such as QEMU, has mapped for DMA, or the VF's own doorbell BAR. So a guest cannot reach other
// memory. The page tables themselves are also at VF VRAM offsets or bus addresses. A walk reads at
// most one entry per level. Virtual addresses have 48 bits, sign-extended or not. The caller of a
// Port has already resolved the flat addresses of LDS and scratch.
//
// Any thread may call invalidate(), invalidate_all(), epoch() and await_holds(). Any thread may use
// a Port, but only one thread at a time. The caller of any other function holds the VF's lock, or
// is constructing the VF. GpuVf and the CP, SDMA, IH, PSP and video blocks use this file.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/ih.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::mem {

/// Each hub has its own context registers, invalidation engines and fault registers (Linux 6.12,
/// amdgpu/gfxhub_v1_0.c and mmhub_v1_0.c); both translate for the same VMIDs.
enum class Hub : std::uint8_t { Gfx, Mm };

inline constexpr unsigned kVmids = 16;
/// GPU (MC) address of VF VRAM offset 0 in VMID 0.
inline constexpr std::uint64_t kFbBase = std::uint64_t{GPUVM_FB_LOCATION_BASE}
                                         << GPUVM_FB_LOCATION_SHIFT;

/// A fault and its origin, as the fault registers and the interrupt report them.
struct VmFault {
    Hub hub = Hub::Gfx;
    Vmid vmid{};
    std::uint16_t pasid = 0;  ///< 0: none
    Fault fault;
};

/// Format of the page tables: pf-driver/hw/gpuvm.h; Linux 6.12, amdgpu/amdgpu_vm.h (AMDGPU_PTE_*),
/// gmc_v9_0.c.
class GpuVm {
public:
    /// Contexts are not part of the state, because they are registers and are saved with the
    /// register file.
    struct State {
        /// Root of each VMID (a PDE) that MAP_PROCESS set; valid only if process_mask has the
        /// VMID's bit.
        std::array<std::uint64_t, kVmids> process_root{};
        std::uint64_t process_mask = 0;   ///< bit n: process_root[n] is valid
        std::uint64_t faults = 0;         ///< calls of record_fault() since the last reset
        std::uint64_t invalidations = 0;  ///< VM_INVALIDATE_ENGn_REQ writes since the last reset
    };

    /// Claims the context registers and the VM_INVALIDATE_ENGn_REQ registers of both hubs
    /// (RegisterFile::claim()). All three objects must outlive the GpuVm.
    GpuVm(regs::RegisterFile& regs, VfVram& vram, SystemMemory& system);
    ~GpuVm();
    GpuVm(const GpuVm&) = delete;
    GpuVm& operator=(const GpuVm&) = delete;

    /// For MAP_PROCESS: `root` (a PDE) replaces the root of the VMID in both hubs. Ends the VMID's
    /// translations. Does nothing for VMID 0, which belongs to the guest's kernel.
    void set_root(Vmid vmid, std::uint64_t root);
    /// Writes ATC_VMIDn_PASID_MAPPING, which pasid_of() reads. Drivers write the same register.
    void set_pasid(Vmid vmid, std::uint16_t pasid);
    [[nodiscard]] std::uint16_t pasid_of(Vmid vmid) const;  ///< 0 if none

    /// Ends all translations of the VMIDs whose bit is set. Returns at once. A walk in progress may
    /// still cache its translation, but the Port never uses this translation. Pointers that
    /// Port::at() has returned stay in use; see port.h and await_holds().
    void invalidate(std::uint16_t vmid_mask);
    /// Ends all translations of the VMIDs that have this PASID; does nothing for 0.
    void invalidate_pasid(std::uint16_t pasid);
    void invalidate_all();
    /// Sets a hook that invalidates the caches of decoded code. The hook is called, with the VF's
    /// lock held, after the guest has ended translations by VM_INVALIDATE_ENGn_REQ or by PASID; its
    /// argument is the bit mask of the VMIDs. Call this once, before a guest can access the VF.
    void set_invalidation_hook(std::function<void(std::uint16_t)> hook) {
        on_invalidated_ = std::move(hook);
    }
    /// A counter; each change ends all translations of `vmid`.
    [[nodiscard]] const std::atomic<std::uint64_t>& epoch(Vmid vmid) const {
        return epochs_[raw(vmid) % kVmids].value;
    }

    /// Call after a commit or release of VRAM, and after a reset or load of the registers. Updates
    /// FB_LOCATION_TOP of both hubs and ends all translations.
    void vram_changed();

    /// Makes a port for memory accesses in `vmid` through `hub`. The port must not outlive this
    /// GpuVm.
    [[nodiscard]] std::unique_ptr<Port> make_port(Vmid vmid, Hub hub);

    /// Call after invalidate_all(). Returns when every Port::Hold from before the call has ended.
    /// Does not wait for workers that execute waves (cp::Engine::quiesce() does). The caller must
    /// hold no lock for which a walk could wait.
    void await_holds() const;

    /// Writes the fault to the fault registers of the hub. If these registers still hold an earlier
    /// fault, which the guest has not cleared, only sets MORE_FAULTS. Counts the fault, and returns
    /// the interrupt that the caller must raise. Layout of status and interrupt: Linux 6.12,
    /// amdgpu/gmc_v9_0.c (gmc_v9_0_process_interrupt) and amdkfd/kfd_int_process_v9.c.
    ih_iv_entry record_fault(const VmFault& fault);

    [[nodiscard]] const State& state() const { return state_; }

    void reset();
    void drain() {}
    void save(Writer& out) const;
    /// Call after the register file was loaded, because the contexts come from its registers.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The ports that make_port() returns.
    class HubPort;
    /// Copy of one context for walks. Atomic, because other threads update the copy while walks
    /// read it.
    struct Context {
        std::atomic<std::uint32_t> control{0};
        std::atomic<std::uint64_t> root{0};
        std::atomic<std::uint64_t> first_page{0};
        std::atomic<std::uint64_t> last_page{0};
    };
    /// Each epoch has its own cache line, because workers read the epoch of their VMID at every
    /// access.
    struct alignas(64) Epoch {
        std::atomic<std::uint64_t> value{1};
    };
    /// The result of a walk: the location of a virtual page, before translation to a host address.
    struct Location {
        Fault fault;
        bool is_system = false;  ///< true: `address` is a bus address; false: a VF VRAM offset
        /// True for an unmapped page of a partially resident texture: reads return 0, writes are
        /// dropped.
        bool is_prt = false;
        std::uint64_t address = 0;  ///< of the 4 KiB page
        std::uint8_t access = 0;    ///< permitted accesses: bits of Access
        /// Size - 1 of the range that the last entry of a multi-level walk maps; otherwise 0.
        std::uint64_t range_mask = 0;
    };

    void claim_hub(Hub hub);
    /// Copies the context registers of the hub to contexts_. Walks read only the copy, because they
    /// may run on other threads.
    void refresh_contexts(Hub hub);
    void on_invalidate_request(Hub hub, std::uint32_t engine, std::uint32_t request);
    void clear_fault(Hub hub);

    /// Ends translations at the guest's request, and calls the invalidation hook.
    void flush(std::uint16_t vmid_mask);
    /// Copies the roots of state_ to process_roots_. Walks read only the copy, because they may run
    /// on other threads.
    void publish_roots();

    /// Starts every walk. Any thread may call it.
    [[nodiscard]] Location locate(Hub hub, Vmid vmid, GpuVa va, Access access) const;
    /// Returns `at`, with a fault if `access` is not permitted at this location.
    [[nodiscard]] static Location checked(Location at, GpuVa va, Access access);
    /// For VMID 0: the frame buffer window maps VRAM without page tables; GART maps all other
    /// addresses.
    [[nodiscard]] Location locate_kernel(const Context& from, std::uint64_t va) const;
    [[nodiscard]] Location locate_process(const Context& from, Vmid vmid, std::uint64_t va) const;
    [[nodiscard]] Location walk_context(const Context& from, std::uint64_t root,
                                        std::uint64_t va) const;
    /// For depth 0 (GART): `root` points to a single table of PTEs.
    [[nodiscard]] Location walk_flat(std::uint64_t root, std::uint64_t index) const;
    /// For page tables of `depth` + 1 levels. Reads at most one entry per level.
    [[nodiscard]] Location walk_tables(std::uint64_t root, unsigned depth, std::uint64_t va) const;
    [[nodiscard]] static Location leaf(std::uint64_t entry, std::uint64_t va, std::uint64_t mask);
    /// Entry `index` of the table to which the PDE `table` points; nullopt if the entry cannot be
    /// read.
    [[nodiscard]] std::optional<std::uint64_t> read_entry(std::uint64_t table,
                                                          std::uint64_t index) const;
    [[nodiscard]] Context& context(Hub hub, Vmid vmid) {
        return contexts_[static_cast<unsigned>(hub)][raw(vmid)];
    }
    [[nodiscard]] const Context& context(Hub hub, Vmid vmid) const {
        return contexts_[static_cast<unsigned>(hub)][raw(vmid)];
    }

    regs::RegisterFile& regs_;
    VfVram& vram_;
    SystemMemory& system_;
    mutable PiMutex ports_mutex_;
    std::set<const Port*> ports_;  ///< all ports that exist, for await_holds()
    std::function<void(std::uint16_t)> on_invalidated_;
    State state_;
    std::array<std::array<Context, kVmids>, GPUVM_HUBS> contexts_;
    /// Copy of the roots that MAP_PROCESS set, for walks on other threads; 0: none. Bit 63 is set
    /// in each copied root, so that even a root of 0 differs from none.
    std::array<std::atomic<std::uint64_t>, kVmids> process_roots_{};
    std::array<Epoch, kVmids> epochs_;
};

/// A port for each VMID through one hub. operator() makes a port at its first use. One thread at a
/// time may use a PortSet.
class PortSet {
public:
    PortSet(GpuVm& gpuvm, Hub hub) : gpuvm_(gpuvm), hub_(hub) {}
    [[nodiscard]] Port& operator()(Vmid vmid);

private:
    GpuVm& gpuvm_;
    Hub hub_;
    std::array<std::unique_ptr<Port>, kVmids> ports_;
};

}  // namespace vgpu::softgpu::mem
