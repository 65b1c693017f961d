// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/mmio.h"

#include <algorithm>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::regs {

namespace {

constexpr std::size_t kDwordBytes = sizeof(std::uint32_t);

/// Register of a byte offset; offsets beyond the BAR give a number that no register has.
RegisterIndex register_of(std::uint64_t byte_offset) {
    return RegisterIndex{
        static_cast<std::uint32_t>(std::min<std::uint64_t>(byte_offset / kDwordBytes, ~0u))};
}

std::size_t bytes_in_register(std::uint64_t byte_offset, std::size_t wanted) {
    return std::min(wanted, kDwordBytes - static_cast<std::size_t>(byte_offset % kDwordBytes));
}

}  // namespace

void mmio_read(RegisterFile& registers, std::uint64_t byte_offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const std::size_t count = bytes_in_register(byte_offset, out.size());
        const std::uint32_t value = registers.mmio_read(register_of(byte_offset));
        const auto part = bytes_of(value).subspan(byte_offset % kDwordBytes, count);
        std::ranges::copy(part, out.begin());
        out = out.subspan(count);
        byte_offset += count;
    }
}

/// Merges with storage, not with a read: a read may have effects, and the write must trigger once.
void mmio_write(RegisterFile& registers, std::uint64_t byte_offset, std::span<const std::byte> data,
                Gate write_gate) {
    while (!data.empty()) {
        const std::size_t count = bytes_in_register(byte_offset, data.size());
        const RegisterIndex index = register_of(byte_offset);
        std::uint32_t value = registers.get(index);
        std::ranges::copy(data.first(count),
                          bytes_of(value).subspan(byte_offset % kDwordBytes).begin());
        registers.mmio_write(index, value, write_gate);
        data = data.subspan(count);
        byte_offset += count;
    }
}

}  // namespace vgpu::softgpu::regs
