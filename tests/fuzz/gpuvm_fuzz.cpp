// SPDX-License-Identifier: MIT
//
// Fuzzes GPUVM with page tables and addresses of a hostile guest. Every translated address must lie
// in the VF's own VRAM or in bus memory that its client mapped.
//
// Input: a byte with the depth, then 10-byte records {table slot, index, u64 entry} until a record
// with slot 0xff, then 9-byte probes {access, u64 address}.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/mem/gpuvm.h"

namespace {

using namespace vgpu::softgpu;

constexpr std::uint64_t kVfBytes = 4ull << 20;
constexpr std::uint64_t kBus = 0x40000000;
constexpr std::uint64_t kBusBytes = 1ull << 20;
constexpr std::uint64_t kTables = 16;  // one page each, from VRAM offset 0
constexpr std::uint64_t kPage = 4096;
constexpr Vmid kVmid{1};

void require(bool claim) {
    if (!claim) std::abort();
}

struct World {
    std::unique_ptr<mem::DeviceVram> device;
    std::unique_ptr<mem::VfVram> vram;
    mem::SystemMemory system;
    regs::RegisterFile regs{regs::Role::Vf};
    std::unique_ptr<mem::GpuVm> gpuvm;
    std::unique_ptr<mem::Port> port;
    const std::byte* bus = nullptr;

    World() {
        device = std::move(*mem::DeviceVram::create(Bytes{2 * VGPU_VRAM_UNIT_BYTES}));
        vram = std::make_unique<mem::VfVram>(*device, VfId{1});
        put_device(kPage, 2 * kPage | VF_PAGE_TABLE_VALID);
        for (std::uint64_t at = 0; at < kVfBytes; at += mem::DeviceVram::kLeafBytes)
            put_device(2 * kPage + at / mem::DeviceVram::kLeafBytes * 8,
                       (VGPU_VRAM_UNIT_BYTES + at) | VF_PAGE_TABLE_VALID);
        require(vram->commit(DeviceOffset{kPage}, Bytes{kVfBytes}).has_value());
        const OwnedFd fd(memfd_create("bus", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        require(ftruncate(fd.get(), kBusBytes) == 0);
        require(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        const std::uint8_t read_write = 0x60;
        require(system.map({Iova{kBus}, Bytes{kBusBytes}, fd.get(), 0, read_write}).has_value());
        bus = system.find(Iova{kBus}).host;
        require(bus != nullptr);
        gpuvm = std::make_unique<mem::GpuVm>(regs, *vram, system);
        port = gpuvm->make_port(kVmid, mem::Hub::Gfx);
        set(REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32 + 2, GPUVM_ROOT_VALID);
        set(REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32 + 2, ~0u);
        set(REG_GC_VM_CONTEXT0_PAGE_TABLE_END_ADDR_HI32 + 2, 0xf);
    }
    void put_device(std::uint64_t offset, std::uint64_t value) {
        require(device->write(DeviceOffset{offset}, bytes_of(value)));
    }
    void set(std::uint32_t index, std::uint32_t value) { regs.write(RegisterIndex{index}, value); }

    [[nodiscard]] bool is_ours(const std::byte* host) const {
        const std::byte* const slice = device->host(DeviceOffset{VGPU_VRAM_UNIT_BYTES});
        return (host >= slice && host < slice + kVfBytes) ||
               (host >= bus && host < bus + kBusBytes);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static World world;
    std::span<const std::byte> in = std::as_bytes(std::span(data, size));
    if (in.empty()) return 0;
    const auto depth = static_cast<std::uint32_t>(in[0]) % 4;
    in = in.subspan(1);
    world.set(REG_GC_VM_CONTEXT0_CNTL + 1,
              HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1) | HW_PREP(VM_CONTEXT_CNTL, DEPTH, depth));
    require(world.device->scrub(DeviceOffset{VGPU_VRAM_UNIT_BYTES}, Bytes{kTables * kPage})
                .has_value());
    while (in.size() >= 10 && in[0] != std::byte{0xff}) {
        const std::uint64_t slot = static_cast<std::uint64_t>(in[0]) % kTables;
        const std::uint64_t index = static_cast<std::uint64_t>(in[1]) % GPUVM_ENTRIES;
        const auto entry = load<std::uint64_t>(in, 2);
        require(world.vram->write(VfOffset{slot * kPage + index * 8}, bytes_of(entry)));
        in = in.subspan(10);
    }
    world.gpuvm->invalidate_all();
    while (in.size() >= 9) {
        const auto access = static_cast<mem::Access>(1u << (4 + static_cast<unsigned>(in[0]) % 3));
        const GpuVa va{load<std::uint64_t>(in, 1)};
        world.port->clear_fault();
        if (const std::byte* host = world.port->at(va, access)) require(world.is_ours(host));
        std::byte value{};
        (void)world.port->read(va, std::span(&value, 1));
        in = in.subspan(9);
    }
    return 0;
}
