// SPDX-License-Identifier: MIT
//
// VfBlocks: the blocks of one VF that a world switch saves and loads, and the operations over all
// these blocks (reset, save, load, poison, count). Part of GpuVf, which connects the blocks; all
// calls are made with the VF lock held.
//
// All operations use one list of members, for_each_block() in gpu_vf_blocks.cpp. The list does not
// compile if a member is missing, or is neither a block nor declared as stateless. Otherwise the
// next owner could see the state of a member that an operation leaves out.
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
    FunctionLevel,  ///< keeps the registers of kSurvivors (e.g. the mailbox) and the IH's counters
    NewOwner,       ///< clears everything of the last owner
};

/// Blocks keep references to the blocks before them, so the order matters: registers, memory, then
/// their users. State streams have the same order.
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
        std::function<regs::Gate()> gate;  ///< Open: the guest may write FA registers
        std::function<void()> interrupt;   ///< raises the function's MSI for a new entry
    };
    VfBlocks(const cp::CommandProcessor::Spec& spec, mem::VfVram& vram, mem::SystemMemory& system,
             const Clock& clock, cp::Services& services, const Hooks& hooks);

    /// Records the fault in the hub's fault registers and raises an interrupt.
    void report_fault(const mem::VmFault& fault);

    void reset(ResetScope scope);
    /// Call before save(): afterwards nothing is in flight in any block.
    void drain();
    void save(Writer& out) const;
    /// An error may leave some blocks loaded: call reset() then.
    [[nodiscard]] Result<> load(Reader& in);
    /// Makes the live state useless: garbage in registers and CP, the reset state in other blocks.
    /// Until load() or reset(), no code may run, translate or read through the blocks.
    void poison();
    /// Adds the blocks' counts since their last reset.
    void add_to(iov::VfStatistics& sum) const;
};

}  // namespace vgpu::softgpu
