// SPDX-License-Identifier: MIT
#include "tests/contract/block_contract.hpp"

#include <gtest/gtest.h>

#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/ih/interrupt_handler.h"
#include "pf-driver/softgpu/iov/doorbells.h"
#include "pf-driver/softgpu/iov/mailbox.h"
#include "pf-driver/softgpu/psp/psp.h"
#include "pf-driver/softgpu/regs/bus_registers.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "tests/support/virtual_clock.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::contract {
namespace {

struct RegisterFileRig {
    regs::RegisterFile& block() { return file; }
    void disturb(unsigned n) { file.write(RegisterIndex{REG_GC_SCRATCH_REG0 + n}, 0x1000 + n); }
    regs::RegisterFile file{regs::Role::Vf};
};

struct BusRegistersRig {
    regs::BusRegisters& block() { return bus; }
    void disturb(unsigned n) {
        file.write(RegisterIndex{REG_NBIO_PCIE_INDEX2}, 0x11180000 + 4 * n);
        file.write(RegisterIndex{REG_NBIO_PCIE_DATA2}, n + 1);
    }
    regs::RegisterFile file{regs::Role::Vf};
    regs::BusRegisters bus{file};
};

struct MailboxRig {
    iov::Mailbox& block() { return mailbox; }
    void disturb(unsigned n) {
        file.write(RegisterIndex{REG_NBIO_MAILBOX_MSGBUF_TRN_DW0}, n + 1);
        file.write(RegisterIndex{REG_NBIO_MAILBOX_CONTROL}, 1);
    }
    regs::RegisterFile file{regs::Role::Vf};
    iov::Mailbox mailbox{file, {[] {}, [] {}, [] {}, [](ih_source) {}}};
};

struct DoorbellsRig final : iov::DoorbellListener {
    DoorbellsRig() { doorbells.set_gate(regs::Gate::Open); }
    iov::Doorbells& block() { return doorbells; }
    void disturb(unsigned n) {
        const std::uint64_t value = n + 1;
        doorbells.write(8ull * (n + 512), bytes_of(value));
        const std::uint32_t narrow = n + 2;
        doorbells.write(4ull * (2 * n + 1), bytes_of(narrow));
    }
    bool deliver_to_ih(const iov::DoorbellRing&) override { return false; }
    void deliver(const iov::DoorbellRing&) override {}
    void work_arrived() override {}
    iov::Doorbells doorbells{*this};
};

/// A VF's memory path, for the blocks that need one.
struct MemoryBlockRig {
    test::MemoryRig memory;
    VirtualClock clock;
    std::unique_ptr<mem::Port> kernel = memory.gpuvm->make_port(Vmid{0}, mem::Hub::Gfx);
};

struct GpuVmRig : MemoryBlockRig {
    mem::GpuVm& block() { return *memory.gpuvm; }
    void disturb(unsigned n) {
        memory.gpuvm->set_root(Vmid{static_cast<std::uint8_t>(8 + n % 8)}, 0x1000001 + 0x1000 * n);
    }
};

struct InterruptHandlerRig : MemoryBlockRig {
    ih::InterruptHandler& block() { return interrupts; }
    void disturb(unsigned n) {
        for (unsigned i = 0; i <= n; ++i) interrupts.raise({});
    }
    ih::InterruptHandler interrupts{memory.regs, memory.system, *kernel, clock, [] {}};
};

struct PspRig : MemoryBlockRig {
    psp::Psp& block() { return psp; }
    void disturb(unsigned n) {
        memory.write_reg(REG_MP0_MP0_SMN_C2PMSG_102, 0x1000 * (n + 1));
        memory.write_reg(REG_MP0_MP0_SMN_C2PMSG_103, 0xf4);
        memory.write_reg(REG_MP0_MP0_SMN_C2PMSG_101, 0x20000);
    }
    psp::Psp psp{memory.regs, *kernel, {[] { return true; }, [](unsigned, std::uint32_t) {}}};
};

struct SdmaRig : MemoryBlockRig {
    sdma::Engine& block() { return engine; }
    void disturb(unsigned n) {
        memory.write_reg(REG_SDMA0_SDMA0_GFX_RB_BASE, 0xf40000 + n);
        memory.write_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL, 0x1017);
        memory.write_reg(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET, 0x780 + 8 * n);
    }
    mem::PortSet ports{*memory.gpuvm, mem::Hub::Mm};
    sdma::Engine engine{0,
                        memory.regs,
                        clock,
                        {[](const ih_iv_entry&) {}, [](const mem::VmFault&) {},
                         [this](Vmid vmid) -> mem::Port& { return ports(vmid); }}};
};

struct CommandProcessorRig : MemoryBlockRig, private cp::Services {
    cp::CommandProcessor& block() { return cp; }
    /// Another queue's ring base, by the registers a driver uses.
    void disturb(unsigned n) {
        memory.write_reg(REG_GC_GRBM_GFX_CNTL,
                         HW_PREP(GRBM_GFX_CNTL, ME, 2) | HW_PREP(GRBM_GFX_CNTL, QUEUE, n % 8));
        memory.write_reg(REG_GC_CP_HQD_PQ_BASE, 0x1000 + n);
        memory.write_reg(REG_GC_CP_HQD_PQ_CONTROL, 9);
    }
    std::unique_ptr<mem::Port> make_port(Vmid vmid) override {
        return memory.gpuvm->make_port(vmid, mem::Hub::Gfx);
    }
    void set_process(Vmid, std::uint64_t, std::uint16_t) override {}
    std::uint16_t pasid_of(Vmid) const override { return 0; }
    void invalidate_pasid(std::uint16_t) override {}
    void report_fault(Vmid, const mem::Fault&) override {}
    void raise(const ih_iv_entry&) override {}
    bool map_sdma(cp::SdmaEngine, const sdma::MapRequest&) override { return false; }
    void unmap_sdma(cp::SdmaEngine, DoorbellIndex) override {}
    void work_arrived() override {}
    cp::CommandProcessor cp{{}, memory.regs, *this, clock};
};

using Rigs = ::testing::Types<RegisterFileRig, BusRegistersRig, MailboxRig, DoorbellsRig, GpuVmRig,
                              InterruptHandlerRig, PspRig, SdmaRig, CommandProcessorRig>;

INSTANTIATE_TYPED_TEST_SUITE_P(Softgpu, BlockContract, Rigs);

}  // namespace
}  // namespace vgpu::softgpu::contract
