// SPDX-License-Identifier: MIT
//
// GpuVm: the 16 address spaces (VMIDs) of one VF, seen through two hubs. The GFX hub serves CP,
// waves and IH; the MM hub serves SDMA, video and PSP. Contexts come from the VM_CONTEXT* registers
// of each hub; MAP_PROCESS overrides the root of a VMID. Engines get a Port per VMID, whose
// translations last until the VMID's epoch ends. An epoch ends with a VM_INVALIDATE_ENGn_REQ, an
// invalidation by PASID, a MAP_PROCESS, a DMA unmap or a change of the VF page table. Until then a
// changed page table entry has no effect, as on hardware.
//
// Every page that a walk yields, and every table that it reads, goes through the VF page table
// (VfVram) or the DMA map (SystemMemory), so a guest's entry cannot name other memory. The number
// of levels bounds a walk. Addresses have 48 bits, sign-extended or not; LDS and scratch apertures
// are resolved before the access reaches a Port.
//
// Any thread may call invalidate(), invalidate_all(), epoch() and await_holds(). Any thread may
// also use a Port, but only one thread at a time. All other calls are made with the VF's lock held.
// CP, SDMA, IH, PSP, the video blocks and the composition root use a GpuVm.
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
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/mem/system_memory.h"
#include "pf-driver/softgpu/mem/vf_vram.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::mem {

/// Each hub has its own context registers, invalidation engines and fault registers (Linux 6.12,
/// amdgpu/gfxhub_v1_0.c and mmhub_v1_0.c); both translate for the same VMIDs.
enum class Hub : std::uint8_t { Gfx, Mm };

inline constexpr unsigned kVmids = 16;
/// MC address of VF VRAM offset 0 in VMID 0.
inline constexpr std::uint64_t kFbBase = std::uint64_t{GPUVM_FB_LOCATION_BASE}
                                         << GPUVM_FB_LOCATION_SHIFT;

/// A fault and its origin, as registers and the interrupt report them.
struct VmFault {
    Hub hub = Hub::Gfx;
    Vmid vmid{};
    std::uint16_t pasid = 0;
    Fault fault;
};

/// Format of page tables: hw/gpuvm.h; Linux 6.12, amdgpu/amdgpu_vm.h (AMDGPU_PTE_*), gmc_v9_0.c.
class GpuVm {
public:
    /// Contexts are not part of the state: they are registers, and saved with the register file.
    struct State {
        /// A PDE for each VMID; valid only if process_mask has the VMID's bit.
        std::array<std::uint64_t, kVmids> process_root{};
        std::uint64_t process_mask = 0;   ///< VMIDs whose root MAP_PROCESS set
        std::uint64_t faults = 0;         ///< faults recorded
        std::uint64_t invalidations = 0;  ///< invalidation requests of the guest
    };

    /// Claims the VM_* registers of both hubs in `regs`. All three objects must outlive the GpuVm.
    GpuVm(regs::RegisterFile& regs, VfVram& vram, SystemMemory& system);
    ~GpuVm();
    GpuVm(const GpuVm&) = delete;
    GpuVm& operator=(const GpuVm&) = delete;

    /// For MAP_PROCESS: `root` (a PDE) replaces the root of the VMID in both hubs. Ends the VMID's
    /// translations. Ignores VMID 0.
    void set_root(Vmid vmid, std::uint64_t root);
    /// Writes ATC_VMIDn_PASID_MAPPING, from which pasid_of() reads; drivers write the register,
    /// too.
    void set_pasid(Vmid vmid, std::uint16_t pasid);
    [[nodiscard]] std::uint16_t pasid_of(Vmid vmid) const;  ///< 0 if none

    /// Ends all translations of the VMIDs whose bit is set. Returns at once; an entry that a walk
    /// in progress fills in is stale already. Pointers of Port::at() stay usable until the engine's
    /// next stop point.
    void invalidate(std::uint16_t vmid_mask);
    /// Ends all translations of the VMIDs of a process; with the VF's lock held.
    void invalidate_pasid(std::uint16_t pasid);
    void invalidate_all();
    /// Sets a hook that is called when the guest has ended translations by a request or by PASID,
    /// so that the caches of decoded code are invalidated, too. The argument is the bit mask of the
    /// VMIDs. The hook is called with the VF's lock held, and set once, before the guest can reach
    /// anything.
    void set_invalidation_hook(std::function<void(std::uint16_t)> hook) {
        on_invalidated_ = std::move(hook);
    }
    /// A counter that changes when translations of `vmid` end.
    [[nodiscard]] const std::atomic<std::uint64_t>& epoch(Vmid vmid) const {
        return epochs_[raw(vmid) % kVmids].value;
    }

    /// Call after a commit or release of VRAM. Updates FB_LOCATION_TOP of both hubs, and ends all
    /// translations.
    void vram_changed();

    /// Makes a port through which an engine accesses `vmid`. The port must not outlive this GpuVm.
    [[nodiscard]] std::unique_ptr<Port> make_port(Vmid vmid, Hub hub);

    /// Call after invalidate_all(). Returns when no engine holds a pointer from before the call,
    /// except inside a run of waves. Any thread, without a lock that a walk could wait for.
    void await_holds() const;

    /// Fills the fault registers of the hub, which keep the first fault until the guest clears
    /// them. Counts the fault, and returns the interrupt to raise. With the VF's lock held.
    /// Layout of status and interrupt: Linux 6.12, amdgpu/gmc_v9_0.c (gmc_v9_0_process_interrupt)
    /// and amdkfd/kfd_int_process_v9.c.
    ih_iv_entry record_fault(const VmFault& fault);

    [[nodiscard]] const State& state() const { return state_; }

    void reset();
    void drain() {}
    void save(Writer& out) const;
    /// Called after the register file was loaded, because contexts come from it.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The ports that make_port() returns.
    class HubPort;
    /// One context as a walk reads it. Register writes on other threads change it.
    struct Context {
        std::atomic<std::uint32_t> control{0};
        std::atomic<std::uint64_t> root{0};
        std::atomic<std::uint64_t> first_page{0};
        std::atomic<std::uint64_t> last_page{0};
    };
    /// One cache line each, because workers read the epoch of their VMID with every access.
    struct alignas(64) Epoch {
        std::atomic<std::uint64_t> value{1};
    };
    /// The location of a virtual page, before translation to a host address.
    struct Location {
        Fault fault;
        bool is_system = false;
        /// True for an unmapped page of a partially resident texture: reads give 0, writes vanish.
        bool is_prt = false;
        std::uint64_t address = 0;  ///< VF VRAM offset or bus address of the 4 KiB page
        std::uint8_t access = 0;
        std::uint64_t range_mask = 0;  ///< address bits inside the range that one entry maps
    };

    void claim_hub(Hub hub);
    /// Copies the context registers of the hub to contexts_, which walks on other threads read.
    void refresh_contexts(Hub hub);
    void on_invalidate_request(Hub hub, std::uint32_t engine, std::uint32_t request);
    void clear_fault(Hub hub);

    /// For the guest's requests: ends translations and calls the hook.
    void flush(std::uint16_t vmid_mask);
    void publish_roots();

    /// Any thread. The only function that decides which memory an access of a VMID reaches.
    [[nodiscard]] Location locate(Hub hub, Vmid vmid, GpuVa va, Access access) const;
    /// Returns `at`, with a fault if `access` is not permitted at this location.
    [[nodiscard]] static Location checked(Location at, GpuVa va, Access access);
    /// VMID 0: the frame buffer window maps VRAM without page tables, everything else is GART.
    [[nodiscard]] Location locate_kernel(const Context& from, std::uint64_t va) const;
    [[nodiscard]] Location locate_process(const Context& from, Vmid vmid, std::uint64_t va) const;
    [[nodiscard]] Location walk_context(const Context& from, std::uint64_t root,
                                        std::uint64_t va) const;
    /// Depth 0, as GART uses it: the root is the table itself.
    [[nodiscard]] Location walk_flat(std::uint64_t root, std::uint64_t index) const;
    /// Reads at most `depth` + 1 entries, whatever they contain.
    [[nodiscard]] Location walk_tables(std::uint64_t root, unsigned depth, std::uint64_t va) const;
    [[nodiscard]] static Location leaf(std::uint64_t entry, std::uint64_t va, std::uint64_t mask);
    /// Entry `index` of the table that the PDE `table` names; none if the table is not in memory.
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
    mutable std::mutex ports_mutex_;
    std::set<const Port*> ports_;  ///< the ports that exist
    std::function<void(std::uint16_t)> on_invalidated_;
    State state_;
    std::array<std::array<Context, kVmids>, GPUVM_HUBS> contexts_;
    /// MAP_PROCESS roots for walks on other threads; 0 if none.
    std::array<std::atomic<std::uint64_t>, kVmids> process_roots_{};
    std::array<Epoch, kVmids> epochs_;
};

/// The ports of one engine, each made at its first use. One thread at a time.
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
