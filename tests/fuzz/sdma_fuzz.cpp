// SPDX-License-Identifier: MIT
//
// SDMA fed with the packets of a hostile process. The engine comes to rest or makes bounded steps,
// what it saves it also loads, and the neighbour's VRAM, the PF's VRAM and the registers of the VF
// stay what they were.
//
// Input: the first byte sets the budget, the rest is put into the user queue's ring and into the
// page that IBs may name.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/engine.h"

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

    /// One page per level and 1 MiB of identity; the guest may overwrite all of it.
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
    void map_queue() {
        put(kMqd + 4 * SDMA_MQD_RB_CNTL, HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2));
        put(kMqd + 4 * SDMA_MQD_RB_BASE, low32(kRing >> 8));
        require(engine->map({GpuVa{mem::kFbBase + kMqd}, DoorbellIndex{2}, GpuVa{0}, kVmid, 1}));
    }

private:
    std::vector<std::byte> registers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static World world;
    if (size < 5) return 0;
    const std::uint32_t budget = 64u << (data[0] % 11);
    const auto packets =
        std::as_bytes(std::span(data + 1, std::min<std::size_t>(size - 1, kRingBytes - 4)));
    require(world.device->scrub(DeviceOffset{kUnit}, Bytes{kVfBytes}).has_value());
    world.build_tables();
    world.engine->reset();
    world.map_queue();
    require(world.vram->write(VfOffset{kRing}, packets));
    require(world.vram->write(VfOffset{0}, packets));
    static const std::vector<std::byte> registers = world.saved_registers();

    world.engine->doorbell(DoorbellIndex{2}, packets.size() / 4 * 4);
    for (int i = 0; i < kMaxSteps; ++i) {
        if (world.engine->step({budget, 4}) != sdma::StepResult::Progress) break;
        if (i % 8 != 7) continue;
        world.engine->unmap({});
        // False if the packets have destroyed the MQD: then there is nothing left to run.
        if (!world.engine->map({GpuVa{mem::kFbBase + kMqd}, DoorbellIndex{2}, GpuVa{0}, kVmid, 1}))
            break;
    }
    std::vector<std::byte> stream;
    Writer out(stream);
    world.engine->save(out);
    Reader in(stream);
    require(world.engine->load(in).has_value());

    // Half a megabyte: too much for every input, and nothing ever puts a changed register back.
    static unsigned runs = 0;
    if (++runs % 64 == 0) require(world.saved_registers() == registers);
    require(world.device->verify_zero(DeviceOffset{kUnit + kVfBytes}, 64_KiB).has_value());
    require(world.device->verify_zero(DeviceOffset{4 * kPage}, 64_KiB).has_value());
    return 0;
}
