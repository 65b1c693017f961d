// SPDX-License-Identifier: MIT
#include "tests/unit/isa/flat_gpu.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/support/isa/tier.h"

namespace vgpu::test {

using softgpu::GpuVa;
using softgpu::mem::Access;
using softgpu::mem::FaultKind;

softgpu::mem::Port::Translation FlatPort::walk(GpuVa va, Access access) {
    constexpr auto all = static_cast<std::uint8_t>(static_cast<std::uint8_t>(Access::Execute) |
                                                   static_cast<std::uint8_t>(Access::Read) |
                                                   static_cast<std::uint8_t>(Access::Write));
    const std::uint64_t page = softgpu::raw(va) / kPageBytes;
    Translation out;
    if (!is_inside(page * kPageBytes, kPageBytes)) {
        out.fault = {FaultKind::NotPresent, access, va};
        return out;
    }
    const auto changed = access_.find(page);
    out.access = changed == access_.end() ? all : changed->second;
    if ((out.access & static_cast<std::uint8_t>(access)) == 0) {
        const auto kind = out.access == 0 ? FaultKind::NotPresent : FaultKind::Permission;
        out.fault = {kind, access, va};
        return out;
    }
    if (std::ranges::find(indirect_, page) == indirect_.end())
        out.host = arena_.data() + (page * kPageBytes - kBase);
    return out;
}

bool FlatPort::read_indirect(GpuVa va, std::span<std::byte> out) {
    if (!is_inside(softgpu::raw(va), out.size())) return false;
    std::ranges::copy(bytes(softgpu::raw(va), out.size()), out.begin());
    return true;
}

bool FlatPort::write_indirect(GpuVa va, std::span<const std::byte> data) {
    if (!is_inside(softgpu::raw(va), data.size())) return false;
    if (on_indirect_write) on_indirect_write();
    std::ranges::copy(data, bytes(softgpu::raw(va), data.size()).begin());
    return true;
}

namespace {

/// For all FlatGpus; nullptr: the run interprets.
softgpu::isa::CodeShare* code_of_this_run() {
    softgpu::isa::CodeMemory* const memory = code_memory_of_run();
    if (memory == nullptr) return nullptr;
    static softgpu::isa::CodeShare share(*memory, ~std::size_t{0}, 0);
    return &share;
}

}  // namespace

FlatGpu::FlatGpu(std::size_t bytes) : FlatGpu(bytes, softgpu::isa::variant()) {}

FlatGpu::FlatGpu(std::size_t bytes, softgpu::isa::Variant variant)
    : FlatGpu(bytes, variant, code_of_this_run()) {}

FlatGpu::FlatGpu(std::size_t bytes, softgpu::isa::Variant variant, softgpu::isa::CodeShare* code)
    : port(epoch, bytes), cache(epoch, variant, code) {}

std::uint64_t FlatGpu::allocate(std::size_t bytes) {
    constexpr std::uint64_t alignment = 256;
    const std::uint64_t va = next_;
    next_ += (bytes + alignment - 1) / alignment * alignment;
    if (next_ > FlatPort::kBase + port.size()) throw std::runtime_error("FlatGpu: arena is full");
    return va;
}

struct FlatGpu::Loaded {
    std::uint64_t base = 0;
    KernelDescriptor kernel;
};

FlatGpu::Loaded FlatGpu::load_object(const std::string& name, int level) {
    const std::string path =
        std::string(VGPU_KERNEL_DIR) + "/" + name + ".O" + std::to_string(level) + ".co";
    const auto object = CodeObject::open(path);
    if (!object) throw std::runtime_error(object.error().message);
    const auto kernel = object->kernel(name);
    if (!kernel) throw std::runtime_error(kernel.error().message);
    next_ = (next_ + 4095) / 4096 * 4096;
    const std::uint64_t base = allocate(object->image().size());
    std::ranges::copy(object->image(), port.bytes(base, object->image().size()).begin());
    return {base, *kernel};
}

void FlatGpu::set_trap_handler(const std::string& name, std::size_t bytes) {
    const Loaded handler = load_object(name, 3);
    trap.base = handler.base + handler.kernel.entry_offset;
    trap.memory = allocate(bytes);
}

void FlatGpu::load_kernel(const std::string& name, int level) {
    const Loaded loaded = load_object(name, level);
    const KernelDescriptor* kernel = &loaded.kernel;
    const std::uint64_t base = loaded.base;
    constexpr std::uint32_t scratch_lane_bytes = 16384;
    constexpr std::uint32_t waves = 32;
    spec = {};
    spec.entry = base + kernel->entry_offset;
    spec.pgm_rsrc1 = kernel->pgm_rsrc1;
    spec.pgm_rsrc2 = kernel->pgm_rsrc2;
    spec.code_properties = kernel->properties;
    spec.lds_bytes = kernel->group_bytes;
    spec.private_bytes = kernel->private_bytes;
    if (kernel->private_bytes == 0) return;
    spec.scratch_wave_bytes = scratch_lane_bytes * softgpu::isa::kLanes;
    spec.scratch_base = allocate(std::size_t{spec.scratch_wave_bytes} * waves);
    // Swizzled in dwords over 64 lanes, lane number added: what the runtime puts into its queues.
    spec.scratch_descriptor = {static_cast<std::uint32_t>(spec.scratch_base),
                               static_cast<std::uint32_t>(spec.scratch_base >> 32) | 1u << 31,
                               spec.scratch_wave_bytes * waves, (3u << 21) | (1u << 23)};
}

void FlatGpu::load_words(const std::vector<std::uint32_t>& words, std::uint32_t vgprs) {
    constexpr std::uint32_t float_mode = 0xf0, user_sgprs = 16;
    spec = {};
    spec.entry = upload(words);
    spec.pgm_rsrc1 = (vgprs / 4 - 1) | (float_mode << 12) | (1u << 21) | (1u << 23);
    spec.pgm_rsrc2 = user_sgprs << 1;
    spec.has_user_data = 1;
}

void FlatGpu::append(const void* value, std::size_t size) {
    const std::size_t place = (arguments_.size() + size - 1) / size * size;
    arguments_.resize(place + size);
    std::memcpy(arguments_.data() + place, value, size);
}

void FlatGpu::set_grid(const Grid& grid) {
    spec.group_size = grid.group;
    spec.grid_size = grid.items;
    // The dispatch packet, as far as kernels read it.
    std::vector<std::byte> packet(64);
    for (unsigned d = 0; d < 3; ++d) {
        softgpu::store(std::span(packet), 4 + 2 * d, static_cast<std::uint16_t>(grid.group[d]));
        softgpu::store(std::span(packet), 12 + 4 * d, grid.items[d]);
    }
    spec.packet_address = upload(packet);
}

void FlatGpu::place_arguments() {
    constexpr std::size_t hidden_arguments = 64;
    arguments_.resize(arguments_.size() + hidden_arguments);
    spec.kernarg_address = upload(arguments_);
}

softgpu::isa::RunContext FlatGpu::context(std::uint64_t budget) {
    softgpu::isa::RunContext out{port, cache, clock, messages, stop, budget};
    out.trap = trap;
    out.wave_sync = wave_sync;
    out.watches = &watches;
    out.vmid = vmid;
    return out;
}

void FlatGpu::start(softgpu::isa::Workgroup& group, std::array<std::uint32_t, 3> id) {
    if (spec.kernarg_address == 0) place_arguments();
    constexpr std::uint32_t trap_present = 1u << 6;
    if (trap.base != 0) spec.pgm_rsrc2 |= trap_present;
    softgpu::isa::start_workgroup(group, spec, {id, 0, 0});
}

softgpu::isa::RunResult FlatGpu::dispatch(const softgpu::isa::RunContext& context) {
    if (softgpu::isa::check(spec) != softgpu::isa::DispatchError::None)
        throw std::runtime_error("FlatGpu: the dispatch is not possible");
    const auto counts = softgpu::isa::group_counts(spec);
    softgpu::isa::RunResult last;
    softgpu::isa::Workgroup group;
    std::uint64_t retired = 0;
    for (std::uint32_t z = 0; z < counts[2]; ++z)
        for (std::uint32_t y = 0; y < counts[1]; ++y)
            for (std::uint32_t x = 0; x < counts[0]; ++x) {
                start(group, {x, y, z});
                last = softgpu::isa::run(group, context);
                retired += last.retired;
                if (last.reason != softgpu::isa::StopReason::AllWavesEnded) return last;
            }
    last.retired = retired;
    return last;
}

}  // namespace vgpu::test
