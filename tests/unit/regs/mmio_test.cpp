// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/register_file.h"

#include <gtest/gtest.h>

#include <array>

namespace vgpu::softgpu::regs {
namespace {

constexpr RegisterIndex kFirst{REG_GC_SCRATCH_REG0};
constexpr std::uint64_t kOffset = REG_GC_SCRATCH_REG0 * 4ull;

template <typename T> T read(RegisterFile& file, std::uint64_t offset) {
    T value{};
    file.mmio_read(offset, bytes_of(value));
    return value;
}
template <typename T> void write(RegisterFile& file, std::uint64_t offset, T value) {
    file.mmio_write(offset, bytes_of(std::as_const(value)), Gate::Open);
}

TEST(Mmio, ADwordIsOneRegister) {
    RegisterFile file(Role::Vf);
    write<std::uint32_t>(file, kOffset, 0x12345678);
    EXPECT_EQ(file.get(kFirst), 0x12345678u);
    EXPECT_EQ(read<std::uint32_t>(file, kOffset), 0x12345678u);
}

TEST(Mmio, BytesAndWordsMergeWithWhatTheRegisterHolds) {
    RegisterFile file(Role::Vf);
    file.set(kFirst, 0x11223344);
    write<std::uint8_t>(file, kOffset + 1, 0xaa);
    write<std::uint16_t>(file, kOffset + 2, 0xbbcc);
    EXPECT_EQ(file.get(kFirst), 0xbbccaa44u);
    EXPECT_EQ(read<std::uint8_t>(file, kOffset + 1), 0xaau);
    EXPECT_EQ(read<std::uint16_t>(file, kOffset + 2), 0xbbccu);
}

TEST(Mmio, APartialWriteTriggersItsRegisterOnce) {
    RegisterFile file(Role::Vf);
    int triggers = 0;
    file.claim(kFirst, 1, {}, [&](RegisterIndex, std::uint32_t) { ++triggers; });
    write<std::uint8_t>(file, kOffset, 1);
    EXPECT_EQ(triggers, 1);
}

TEST(Mmio, AnAccessAcrossRegistersTouchesEach) {
    RegisterFile file(Role::Vf);
    write<std::uint64_t>(file, kOffset + 2, 0x8877665544332211ull);
    EXPECT_EQ(file.get(kFirst), 0x22110000u);
    EXPECT_EQ(file.get(RegisterIndex{raw(kFirst) + 1}), 0x66554433u);
    EXPECT_EQ(file.get(RegisterIndex{raw(kFirst) + 2}), 0x00008877u);
    EXPECT_EQ(read<std::uint64_t>(file, kOffset + 2), 0x8877665544332211ull);
}

TEST(Mmio, BeyondTheBarReadsAllOnesAndDropsWrites) {
    RegisterFile file(Role::Vf);
    write<std::uint32_t>(file, HW_REG_BAR_BYTES, 1);
    EXPECT_EQ(read<std::uint32_t>(file, HW_REG_BAR_BYTES), ~0u);
    EXPECT_EQ(read<std::uint32_t>(file, ~0ull - 7), ~0u);
}

}  // namespace
}  // namespace vgpu::softgpu::regs
