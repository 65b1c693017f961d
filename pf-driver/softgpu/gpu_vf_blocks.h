// SPDX-License-Identifier: MIT
//
// VfBlocks: the blocks of one VF whose state its world switch moves, each built over the ones
// before it, and the acts that go through all of them: reset, save, load, poison, count. A part of
// GpuVf, which connects them; all calls are made with the VF lock held.
//
// The acts have one list of members, every() in gpu_vf_blocks.cpp. It does not compile if a member
// is missing there, or is neither a block nor said to be without state: what an act forgets would
// be left for the next tenant.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/ih/interrupt_handler.h"
#include "pf-driver/softgpu/iov/vf_panel.h"
#include "pf-driver/softgpu/mem/gpuvm.h"
#include "pf-driver/softgpu/psp/psp.h"
#include "pf-driver/softgpu/regs/bus_registers.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/regs/rlcg.h"
#include "pf-driver/softgpu/regs/shader_arrays.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "pf-driver/softgpu/video/engine.h"

namespace vgpu::softgpu {

/// What a reset leaves alone besides VRAM, which no reset touches: scrubbing is an operation of its
/// own (BulkOps).
enum class ResetScope : std::uint8_t {
    FunctionLevel,  ///< the mailbox lives on: PF and driver talk across it
    NewOwner,       ///< nothing of the last owner stays
};

/// Blocks keep references to those before them, so the order is part of the design: registers,
/// memory, then who uses both. It is the order of state streams, too.
struct VfBlocks {
    regs::RegisterFile registers;
    mem::GpuVm gpuvm;
    /// Ports of VMID 0 for blocks with the VF lock held: interrupt rings (GFX hub) and PSP (MM
    /// hub).
    std::unique_ptr<mem::Port> kernel_gfx;
    std::unique_ptr<mem::Port> kernel_mm;
    mem::PortSet mm_ports;
    regs::BusRegisters bus;
    regs::Rlcg rlcg;
    regs::ShaderArrays shader_arrays;
    ih::InterruptHandler interrupts;
    psp::Psp psp;
    std::array<sdma::Engine, SDMA_ENGINES> sdma;
    video::Engine video;
    cp::CommandProcessor cp;

    struct Hooks {
        std::function<regs::Gate()> gate;  ///< may the guest write registers of full access?
        std::function<void()> interrupt;   ///< an interrupt ring has news
    };
    VfBlocks(const cp::CommandProcessor::Spec& spec, mem::VfVram& vram, mem::SystemMemory& system,
             const Clock& clock, cp::Services& services, const Hooks& hooks);

    /// Into the fault registers of the hub, and an interrupt.
    void report_fault(const mem::VmFault& fault);

    void reset(ResetScope scope);
    /// Before save(): nothing is in flight in any block.
    void drain();
    void save(Writer& out) const;
    /// An error may leave some blocks loaded: reset() is to follow.
    [[nodiscard]] Result<> load(Reader& in);
    /// Nothing that runs, translates or is read may be taken from the live blocks after this, until
    /// load() or reset().
    void poison();
    /// Adds what the blocks have counted since their last reset.
    void add_to(iov::VfStatistics& sum) const;
};

}  // namespace vgpu::softgpu
