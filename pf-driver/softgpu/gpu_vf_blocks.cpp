// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/gpu_vf_blocks.h"

#include <algorithm>

namespace vgpu::softgpu {

namespace {

/// The value of poisoned registers, which stands out in a dump.
constexpr std::uint32_t kPoison = 0x5bad5badu;

/// Registers that survive a reset of scope FunctionLevel. The mailbox survives because PF and guest
/// exchange messages about the FLR itself (Linux 6.12, amdgpu/mxgpu_ai.c polls the mailbox for
/// FLR_NOTIFICATION_CMPL). The addresses of the frame buffer survive because an FLR does not change
/// the VF's VRAM.
struct Survivor {
    std::uint32_t first;
    std::uint32_t count;
};
constexpr std::array kSurvivors{
    Survivor{REG_NBIO_MAILBOX_MSGBUF_TRN_DW0,
             REG_NBIO_MAILBOX_INT_CNTL - REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + 1u},
    Survivor{REG_GC_MC_VM_FB_OFFSET, 1},
    Survivor{REG_GC_MC_VM_FB_LOCATION_BASE, 2},
    Survivor{REG_MMHUB_MC_VM_FB_OFFSET, 1},
    Survivor{REG_MMHUB_MC_VM_FB_LOCATION_BASE, 2},
};

template <typename Visit> void for_each_survivor(Visit visit) {
    for (const Survivor& row : kSurvivors)
        for (std::uint32_t i = 0; i < row.count; ++i) visit(RegisterIndex{row.first + i});
}

// --- the list ------------------------------------------------------------------------------------

/// True for the types of members that the operations skip. A port holds only translations, which an
/// invalidation ends. ShaderArrays holds a setting of the PF, and Rlcg a count since the device
/// started; both stay.
template <typename T> constexpr bool kIsSkipped = false;
template <> constexpr bool kIsSkipped<std::unique_ptr<mem::Port>> = true;
template <> constexpr bool kIsSkipped<mem::PortSet> = true;
template <> constexpr bool kIsSkipped<regs::Rlcg> = true;
template <> constexpr bool kIsSkipped<regs::ShaderArrays> = true;

template <typename T> constexpr bool kIsArray = false;
template <typename T, std::size_t N> constexpr bool kIsArray<std::array<T, N>> = true;

template <typename Member, typename Visit> void visit_member(Member& member, Visit& visit) {
    using T = std::remove_const_t<Member>;
    if constexpr (kIsArray<T>) {
        for (auto& each : member) visit_member(each, visit);
    } else if constexpr (Block<T>) {
        visit(member);
    } else {
        static_assert(kIsSkipped<T>, "a block, or a member that the operations skip (kIsSkipped)");
    }
}

/// Visits every block in the order of construction. The structured binding does not compile if a
/// member is missing; visit_member() does not compile if a member is neither a block nor in
/// kIsSkipped.
template <typename Self, typename Visit> void for_each_block(Self& self, Visit visit) {
    auto& [registers, gpuvm, kernel_gfx, kernel_mm, mm_ports, bus, rlcg, shader_arrays, interrupts,
           psp, sdma, video, cp] = self;
    const auto visit_all = [&](auto&... members) { (visit_member(members, visit), ...); };
    visit_all(registers, gpuvm, kernel_gfx, kernel_mm, mm_ports, bus, rlcg, shader_arrays,
              interrupts, psp, sdma, video, cp);
}

// --- hooks ---------------------------------------------------------------------------------------

using Gate = std::function<regs::Gate()>;

psp::Psp::Hooks psp_hooks(VfBlocks& blocks, const Gate& gate) {
    return {[gate] { return gate() == regs::Gate::Open; },
            [&blocks](unsigned ring, std::uint32_t value) {
                blocks.interrupts.program_control(ring, value);
            }};
}

sdma::Engine::Hooks sdma_hooks(VfBlocks& blocks) {
    return {[&blocks](const ih_iv_entry& entry) { blocks.interrupts.raise(entry); },
            [&blocks](const mem::VmFault& fault) { blocks.report_fault(fault); },
            [&blocks](Vmid vmid) -> mem::Port& { return blocks.mm_ports(vmid); }};
}

/// The encoders do not know processes, so the hook takes the PASID from the VMID.
video::Engine::Hooks video_hooks(VfBlocks& blocks, const Gate& gate) {
    const auto fault = [&blocks](mem::VmFault what) {
        what.pasid = blocks.gpuvm.pasid_of(what.vmid);
        blocks.report_fault(what);
    };
    return {[&blocks](const ih_iv_entry& entry) { blocks.interrupts.raise(entry); }, fault,
            [&blocks](Vmid vmid) -> mem::Port& { return blocks.mm_ports(vmid); },
            [gate] { return gate() == regs::Gate::Open; }};
}

// --- operations that differ from block to block --------------------------------------------------

template <typename T> void poison_block(T& block) {
    block.reset();
}
void poison_block(cp::CommandProcessor& cp) {
    cp.poison();
}
void poison_block(regs::RegisterFile& registers) {
    for (std::uint32_t i = 0; i < HW_REG_COUNT; ++i) registers.set(RegisterIndex{i}, kPoison);
}

/// Adds the counters that the block clears at a reset. One overload for each type of block.
void count(iov::VfStatistics& sum, const cp::CommandProcessor& cp) {
    sum.wave_instructions += cp.counters().wave_instructions;
    sum.illegal_instructions += cp.counters().illegal_instructions;
    sum.bad_packets += cp.counters().bad_packets;
}
void count(iov::VfStatistics& sum, const sdma::Engine& engine) {
    sum.bad_packets += engine.state().bad_packets;
}
void count(iov::VfStatistics& sum, const video::Engine& engine) {
    sum.bad_packets += engine.state().bad_packets;
}
void count(iov::VfStatistics& sum, const mem::GpuVm& gpuvm) {
    sum.faults += gpuvm.state().faults;
}
void count(iov::VfStatistics&, const regs::RegisterFile&) {}
void count(iov::VfStatistics&, const regs::BusRegisters&) {}
void count(iov::VfStatistics&, const ih::InterruptHandler&) {}
void count(iov::VfStatistics&, const psp::Psp&) {}

}  // namespace

VfBlocks::VfBlocks(const cp::CommandProcessor::Spec& spec, mem::VfVram& vram,
                   mem::SystemMemory& system, const Clock& clock, cp::Services& services,
                   const Hooks& hooks)
    : registers(regs::Role::Vf),
      gpuvm(registers, vram, system),
      kernel_gfx(gpuvm.make_port(Vmid{0}, mem::Hub::Gfx)),
      kernel_mm(gpuvm.make_port(Vmid{0}, mem::Hub::Mm)),
      mm_ports(gpuvm, mem::Hub::Mm),
      bus(registers),
      rlcg(registers, hooks.gate),
      shader_arrays(registers),
      interrupts(registers, system, *kernel_gfx, clock, hooks.interrupt),
      psp(registers, *kernel_mm, psp_hooks(*this, hooks.gate)),
      sdma{{{0, registers, clock, sdma_hooks(*this)}, {1, registers, clock, sdma_hooks(*this)}}},
      video(registers, video_hooks(*this, hooks.gate)),
      cp(spec, registers, services, clock) {}

void VfBlocks::report_fault(const mem::VmFault& fault) {
    interrupts.raise(gpuvm.record_fault(fault));
}

/// FunctionLevel puts the survivors back after every block has reset, because a block may write
/// registers in its reset(). FunctionLevel skips the IH, which keeps its counters; the IH's rings
/// are registers, which the register file resets.
void VfBlocks::reset(ResetScope scope) {
    const bool is_flr = scope == ResetScope::FunctionLevel;
    std::vector<std::uint32_t> survivors;
    for_each_survivor([&](RegisterIndex index) { survivors.push_back(registers.get(index)); });
    for_each_block(*this, [&]<typename T>(T& block) {
        if (!is_flr || !std::is_same_v<T, ih::InterruptHandler>) block.reset();
    });
    if (!is_flr) return;
    auto value = survivors.begin();
    for_each_survivor([&](RegisterIndex index) { registers.set(index, *value++); });
}

void VfBlocks::drain() {
    for_each_block(*this, [](auto& block) { block.drain(); });
}

void VfBlocks::save(Writer& out) const {
    for_each_block(*this, [&](const auto& block) { block.save(out); });
}

Result<> VfBlocks::load(Reader& in) {
    Result<> loaded;
    for_each_block(*this, [&](auto& block) {
        if (loaded) loaded = block.load(in);
    });
    return loaded;
}

void VfBlocks::poison() {
    for_each_block(*this, [](auto& block) { poison_block(block); });
}

void VfBlocks::add_to(iov::VfStatistics& sum) const {
    for_each_block(*this, [&](const auto& block) { count(sum, block); });
}

}  // namespace vgpu::softgpu
