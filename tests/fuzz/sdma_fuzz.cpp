// SPDX-License-Identifier: MIT
//
// Fuzzes SDMA with the packets of a hostile process or of a hostile kernel. The engine must stop or
// make bounded steps, and must load what it saves. The VRAM of other VFs and of the PF must not
// change, nor the registers of the VF if a process sent the packets.
//
// Input: the first byte sets the budget. Its bit 4 chooses the kernel's ring in VMID 0, which may
// use SRBM_WRITE, register polls, HDP flushes and any VMID; otherwise the packets are in a user
// queue. The other bytes are put into the ring and to the start of VRAM, where IBs may lie. While a
// packet waits, time passes, and the input's dwords appear one after the other at VRAM offset 0 and
// in a register that polls can use.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "tests/support/virtual_clock.h"

namespace {

using namespace vgpu::softgpu;

constexpr std::uint64_t kUnit = VGPU_VRAM_UNIT_BYTES;
constexpr std::uint64_t kVfBytes = 2ull << 20;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMqd = 0x10000;   // VF VRAM
constexpr std::uint64_t kRing = 0x20000;  // user VA = VF VRAM offset: identity for 1 MiB
constexpr std::uint32_t kRingLog2 = 12;
constexpr std::uint64_t kRingBytes = 4ull << kRingLog2;
constexpr Vmid kVmid{8};
constexpr int kMaxSteps = 64;
constexpr DoorbellIndex kDoorbell{2};
constexpr std::uint32_t kPolledRegister = REG_GC_SCRATCH_REG0;
constexpr std::uint8_t kIsKernel = 1 << 4;

void require(bool claim) {
    if (!claim) std::abort();
}

struct World {
    std::unique_ptr<mem::DeviceVram> device;
    std::unique_ptr<mem::VfVram> vram;
    mem::SystemMemory system;
    regs::RegisterFile regs{regs::Role::Vf};
    std::unique_ptr<mem::GpuVm> gpuvm;
    std::unique_ptr<mem::PortSet> ports;
    VirtualClock clock;
    std::unique_ptr<sdma::Engine> engine;

    World() {
        device = std::move(*mem::DeviceVram::create(Bytes{2 * kUnit}));
        vram = std::make_unique<mem::VfVram>(*device, VfId{1});
        put_device(kPage, 2 * kPage | VF_PAGE_TABLE_VALID);
        for (std::uint64_t at = 0; at < kVfBytes; at += mem::DeviceVram::kLeafBytes)
            put_device(2 * kPage + at / mem::DeviceVram::kLeafBytes * 8,
                       (kUnit + at) | VF_PAGE_TABLE_VALID);
        require(vram->commit(DeviceOffset{kPage}, Bytes{kVfBytes}).has_value());
        gpuvm = std::make_unique<mem::GpuVm>(regs, *vram, system);
        gpuvm->vram_changed();
        ports = std::make_unique<mem::PortSet>(*gpuvm, mem::Hub::Mm);
        engine = std::make_unique<sdma::Engine>(
            0, regs, clock,
            sdma::Engine::Hooks{[](const ih_iv_entry&) {}, [](const mem::VmFault&) {},
                                [this](Vmid vmid) -> mem::Port& { return (*ports)(vmid); }});
        set(REG_MMHUB_VM_CONTEXT0_CNTL + raw(kVmid),
            HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1) | HW_PREP(VM_CONTEXT_CNTL, DEPTH, 3));
        set(REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32 + 2u * raw(kVmid), ~0u);
        set(REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_END_ADDR_HI32 + 2u * raw(kVmid), 0xf);
    }
    void put_device(std::uint64_t offset, std::uint64_t value) {
        require(device->write(DeviceOffset{offset}, bytes_of(value)));
    }
    template <typename T> void put(std::uint64_t offset, const T& value) {
        require(vram->write(VfOffset{offset}, bytes_of(value)));
    }
    void set(std::uint32_t index, std::uint32_t value) { regs.write(RegisterIndex{index}, value); }

    /// Every register of the VF, as bytes.
    const std::vector<std::byte>& saved_registers() {
        registers_.clear();
        Writer out(registers_);
        regs.save(out);
        return registers_;
    }

    /// Page tables with one page per level, which map 1 MiB 1:1; the guest may overwrite them.
    void build_tables() {
        constexpr std::uint64_t kFirst = 0x180000;
        set(REG_MMHUB_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32 + 2u * raw(kVmid),
            low32(kFirst | GPUVM_ROOT_VALID));
        for (std::uint64_t level = 0; level < 3; ++level)
            put(kFirst + level * kPage, (kFirst + (level + 1) * kPage) | GPUVM_PTE_VALID);
        constexpr std::uint64_t kFlags = GPUVM_PTE_VALID | GPUVM_PTE_READABLE | GPUVM_PTE_WRITEABLE;
        for (std::uint64_t i = 0; i < 256; ++i) put(kFirst + 3 * kPage + 8 * i, i * kPage | kFlags);
        // Beyond the slice: must fault.
        put(kFirst + 3 * kPage + 8 * 256, kVfBytes | kFlags);
        gpuvm->invalidate_all();
    }
    void start_kernel_ring() {
        const std::uint32_t control = HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2) |
                                      HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1);
        constexpr std::uint64_t kBase = mem::kFbBase + kRing;
        constexpr std::uint64_t kReport = mem::kFbBase + kMqd;
        set(REG_SDMA0_SDMA0_GFX_RB_CNTL, control);
        set(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI, high32(kReport));
        set(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO, low32(kReport));
        set(REG_SDMA0_SDMA0_GFX_RB_BASE, low32(kBase >> 8));
        set(REG_SDMA0_SDMA0_GFX_RB_BASE_HI, high32(kBase >> 8));
        set(REG_SDMA0_SDMA0_GFX_DOORBELL, HW_PREP(SDMA_DOORBELL, ENABLE, 1));
        set(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET,
            HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, raw(kDoorbell)));
        set(REG_SDMA0_SDMA0_CNTL, HW_PREP(SDMA_CNTL, TRAP_ENABLE, 1));
        set(REG_SDMA0_SDMA0_GFX_RB_CNTL, control | HW_PREP(SDMA_RB_CNTL, RB_ENABLE, 1));
    }
    [[nodiscard]] bool map_queue() {
        return engine->map({GpuVa{mem::kFbBase + kMqd}, kDoorbell, GpuVa{0}, kVmid, 1});
    }
    void make_queue() {
        put(kMqd + 4 * SDMA_MQD_RB_CNTL, HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2));
        put(kMqd + 4 * SDMA_MQD_RB_BASE, low32(kRing >> 8));
        require(map_queue());
    }
    /// Changes the time, memory and register that packets wait for.
    void go_on(std::uint32_t value) {
        clock.advance(std::chrono::microseconds(1));
        put(0, value);
        set(kPolledRegister, value);
    }
    void check_isolation() {
        require(device->verify_zero(DeviceOffset{kUnit + kVfBytes}, 64_KiB).has_value());
        require(device->verify_zero(DeviceOffset{4 * kPage}, 64_KiB).has_value());
    }
    void check_stream() {
        std::vector<std::byte> stream;
        Writer out(stream);
        engine->save(out);
        Reader in(stream);
        require(engine->load(in).has_value());
    }

private:
    std::vector<std::byte> registers_;
};

using Packets = std::span<const std::byte>;

void submit(World& world, Packets packets) {
    require(world.vram->write(VfOffset{kRing}, packets));
    require(world.vram->write(VfOffset{0}, packets));
    world.engine->doorbell(kDoorbell, packets.size() / 4 * 4);
}

/// Steps until the engine is idle, at most kMaxSteps times; unmaps and maps a user queue at every
/// eighth step.
void run(World& world, std::uint32_t budget, Packets packets, bool is_kernel) {
    for (int i = 0; i < kMaxSteps; ++i) {
        const auto result = world.engine->step({budget, 4});
        if (result == StepResult::Idle) break;
        if (result == StepResult::Blocked) {
            std::uint32_t value = 0;
            const std::size_t at = static_cast<std::size_t>(i) * sizeof(value);
            if (at + sizeof(value) <= packets.size())
                std::memcpy(&value, packets.data() + at, sizeof(value));
            world.go_on(value);
            (void)world.engine->needs_polling();
            (void)world.engine->has_work();
        }
        if (is_kernel || i % 8 != 7) continue;
        world.engine->unmap(kDoorbell);
        // False if the packets have destroyed the MQD: then there is nothing left to run.
        if (!world.map_queue()) break;
    }
}

/// The kernel may write every register, so nothing of its world is used again.
void run_kernel(std::uint32_t budget, Packets packets) {
    World world;
    world.build_tables();
    world.start_kernel_ring();
    submit(world, packets);
    run(world, budget, packets, true);
    world.check_stream();
    world.check_isolation();
}

void run_user(std::uint32_t budget, Packets packets) {
    static World world;
    require(world.device->scrub(DeviceOffset{kUnit}, Bytes{kVfBytes}).has_value());
    world.build_tables();
    world.engine->reset();
    world.set(kPolledRegister, 0);
    world.make_queue();
    static const std::vector<std::byte> registers = world.saved_registers();
    submit(world, packets);
    run(world, budget, packets, false);
    world.check_stream();
    // The registers are half a megabyte, too much to compare for every input. A changed register
    // stays changed, so that a later run finds it.
    static unsigned runs = 0;
    world.set(kPolledRegister, 0);
    if (++runs % 64 == 0) require(world.saved_registers() == registers);
    world.check_isolation();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 5) return 0;
    const std::uint32_t budget = 64u << (data[0] % 16 % 11);
    const auto packets =
        std::as_bytes(std::span(data + 1, std::min<std::size_t>(size - 1, kRingBytes - 4)));
    ((data[0] & kIsKernel) != 0 ? run_kernel : run_user)(budget, packets);
    return 0;
}
