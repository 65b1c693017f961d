// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/bus_registers.h"

#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {
namespace {

class BusRegistersTest : public ::testing::Test {
protected:
    void smn_write(std::uint32_t address, std::uint32_t value) {
        file.write(RegisterIndex{REG_NBIO_PCIE_INDEX2}, address);
        file.write(RegisterIndex{REG_NBIO_PCIE_DATA2}, value);
    }
    std::uint32_t smn_read(std::uint32_t address) {
        file.write(RegisterIndex{REG_NBIO_PCIE_INDEX2}, address);
        return file.read(RegisterIndex{REG_NBIO_PCIE_DATA2});
    }

    RegisterFile file{Role::Vf};
    BusRegisters bus{file};
};

TEST_F(BusRegistersTest, SmnWordsAreStoredByAddress) {
    smn_write(0x11180044, 0x18000000);
    smn_write(0x11180080, 0x100);
    EXPECT_EQ(smn_read(0x11180044), 0x18000000u);
    EXPECT_EQ(smn_read(0x11180080), 0x100u);
    EXPECT_EQ(smn_read(0x03b10028), 0u);
}

TEST_F(BusRegistersTest, SmnStorageIsBoundedAndForgetsTheOldest) {
    for (std::uint32_t i = 0; i <= BusRegisters::State::kWords; ++i) smn_write(4 * i, i + 1);
    EXPECT_EQ(smn_read(0), 0u);
    EXPECT_EQ(smn_read(4), 2u);
    EXPECT_EQ(smn_read(4 * BusRegisters::State::kWords), BusRegisters::State::kWords + 1);
}

TEST_F(BusRegistersTest, HdpFlushIsDoneAtOnce) {
    file.write(RegisterIndex{REG_NBIO_GPU_HDP_FLUSH_REQ}, 0x400);
    EXPECT_EQ(file.read(RegisterIndex{REG_NBIO_GPU_HDP_FLUSH_DONE}) & 0x400, 0x400u);
}

TEST_F(BusRegistersTest, SafeModeCommandIsCleared) {
    file.write(RegisterIndex{REG_GC_RLC_SAFE_MODE}, 3);
    EXPECT_EQ(file.read(RegisterIndex{REG_GC_RLC_SAFE_MODE}), 2u);
}

TEST_F(BusRegistersTest, AStreamWithAnImpossibleCountIsRefused) {
    BusRegisters::State state;
    state.used = BusRegisters::State::kWords + 1;
    std::vector<std::byte> stream;
    Writer(stream).value(state);
    Reader in(stream);
    EXPECT_FALSE(bus.load(in));
    EXPECT_EQ(smn_read(0), 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::regs
