// SPDX-License-Identifier: MIT
//
// VfBlocks: the blocks (base/block.h) of one VF that a world switch in true-copy mode
// (iov::SwitchMode) saves and loads, and the operations over all these blocks (reset, drain, save,
// load, poison, count). GpuVf connects the blocks with the rest of the VF. Call every function with
// the VF lock held.
//
// All operations use one list of members, for_each_block() in gpu_vf_blocks.cpp. The list does not
// compile if a member is missing, or is neither a block nor in kIsSkipped. Without this check, an
// operation could leave out a new member, and the next owner of the VF could see the old state of
// that member.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/ih/interrupt_handler.h"
#include "pf-driver/softgpu/iov/vf_control.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/psp/psp.h"
#include "pf-driver/softgpu/regs/bus_registers.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/regs/rlcg.h"
#include "pf-driver/softgpu/regs/shader_arrays.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "pf-driver/softgpu/video/engine.h"

namespace vgpu::softgpu {

/// The extent of a reset. No reset touches VRAM, which a separate operation scrubs (BulkOps).
enum class ResetScope : std::uint8_t {
    /// For an FLR or device reset that the PF orders, and for the commands INIT, CLEAR_VF_STATE and
    /// SHUTDOWN (hw/gpuiov.h). Keeps the registers of kSurvivors (gpu_vf_blocks.cpp), such as the
    /// mailbox, and the IH's counters.
    FunctionLevel,
    /// For a reset or departure of the client, for a scrub, and after a failed load. Clears
    /// everything of the last owner.
    NewOwner,
};

/// Blocks keep references to the blocks before them, so the order matters: registers, memory, then
/// their users. State streams have the same order. mem/gpuvm.h describes the hubs.
struct VfBlocks {
    regs::RegisterFile registers;
    mem::GpuVm gpuvm;
    std::unique_ptr<mem::Port> kernel_gfx;  ///< VMID 0 on the GFX hub; for the interrupt rings
    std::unique_ptr<mem::Port> kernel_mm;   ///< VMID 0 on the MM hub; for the PSP
    mem::PortSet mm_ports;                  ///< every VMID on the MM hub; for SDMA and video
    regs::BusRegisters bus;
    regs::Rlcg rlcg;
    regs::ShaderArrays shader_arrays;
    ih::InterruptHandler interrupts;
    psp::Psp psp;
    std::array<sdma::Engine, SDMA_ENGINES> sdma;
    video::Engine video;
    cp::CommandProcessor cp;

    struct Hooks {
        std::function<regs::Gate()> gate;  ///< Open: the guest has full access
        std::function<void()> interrupt;   ///< raises the function's MSI for a new IH entry
    };
    VfBlocks(const cp::CommandProcessor::Spec& spec, mem::VfVram& vram, mem::SystemMemory& system,
             const Clock& clock, cp::Services& services, const Hooks& hooks);

    /// Records the fault in the fault registers of its hub and raises an interrupt.
    void report_fault(const mem::VmFault& fault);

    /// Resets all blocks to the state after power-on, except for the state that `scope` keeps.
    void reset(ResetScope scope);
    /// Call before save(): afterwards nothing is in flight in any block.
    void drain();
    void save(Writer& out) const;
    /// EPROTO if a block refuses the stream. Call reset() then, because other blocks may be loaded
    /// already.
    [[nodiscard]] Result<> load(Reader& in);
    /// Makes the live state useless: fills registers and CP with garbage and resets all other
    /// blocks. Until load() or reset(), nothing may use the blocks.
    void poison();
    /// Adds the blocks' counts since their last reset to `sum`.
    void add_to(iov::VfStatistics& sum) const;
};

}  // namespace vgpu::softgpu
