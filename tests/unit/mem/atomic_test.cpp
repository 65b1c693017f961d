// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/atomic.h"

#include <gtest/gtest.h>

#include <thread>

#include "pf-driver/hw/tc_op.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::mem {
namespace {

struct AtomicTest : testing::Test {
    test::MemoryRig rig;
    std::unique_ptr<Port> port = rig.gpuvm->make_port(Vmid{0}, Hub::Mm);

    template <typename T> T after(std::uint32_t operation, T memory, T source, T compare = 0) {
        rig.put(0x2000, memory);
        const AtomicResult result =
            perform_atomic(*port, {operation, GpuVa{kFbBase + 0x2000}, source, compare});
        EXPECT_EQ(result.status, AtomicStatus::Done);
        EXPECT_EQ(result.before, memory);
        return rig.get<T>(0x2000);
    }
};

struct Row {
    std::uint32_t operation;
    std::uint64_t memory;
    std::uint64_t source;
    std::uint64_t compare;
    std::uint64_t after;
};

TEST_F(AtomicTest, Operations32) {
    const Row rows[] = {
        {TC_OP_SWAP_32, 1, 2, 0, 2},
        {TC_OP_CMPSWAP_32, 5, 9, 5, 9},
        {TC_OP_CMPSWAP_32, 6, 9, 5, 6},
        {TC_OP_ADD_32, 0xffffffff, 2, 0, 1},
        {TC_OP_SUB_32, 1, 2, 0, 0xffffffff},
        {TC_OP_SMIN_32, 0xffffffff, 1, 0, 0xffffffff},
        {TC_OP_UMIN_32, 0xffffffff, 1, 0, 1},
        {TC_OP_SMAX_32, 0xffffffff, 1, 0, 1},
        {TC_OP_UMAX_32, 0xffffffff, 1, 0, 0xffffffff},
        {TC_OP_AND_32, 0xf0, 0x3c, 0, 0x30},
        {TC_OP_OR_32, 0xf0, 0x0c, 0, 0xfc},
        {TC_OP_XOR_32, 0xf0, 0x3c, 0, 0xcc},
        {TC_OP_INC_32, 3, 3, 0, 0},
        {TC_OP_INC_32, 2, 3, 0, 3},
        {TC_OP_DEC_32, 0, 7, 0, 7},
        {TC_OP_DEC_32, 9, 7, 0, 7},
        {TC_OP_DEC_32, 5, 7, 0, 4},
    };
    for (const Row& row : rows)
        EXPECT_EQ(after<std::uint32_t>(row.operation, low32(row.memory), low32(row.source),
                                       low32(row.compare)),
                  row.after)
            << "operation " << row.operation;
}

TEST_F(AtomicTest, Operations64) {
    const std::uint64_t minus_one = ~0ull;
    const Row rows[] = {
        {TC_OP_ADD_64, 10, minus_one, 0, 9},
        {TC_OP_SWAP_64, 1, 1ull << 40, 0, 1ull << 40},
        {TC_OP_CMPSWAP_64, 1ull << 40, 3, 1ull << 40, 3},
        {TC_OP_SMAX_64, minus_one, 1, 0, 1},
        {TC_OP_UMAX_64, minus_one, 1, 0, minus_one},
        {TC_OP_INC_64, minus_one, minus_one, 0, 0},
        {TC_OP_ADD_64 | TC_OP_NO_RETURN, 1, 1, 0, 2},
    };
    for (const Row& row : rows)
        EXPECT_EQ(after<std::uint64_t>(row.operation, row.memory, row.source, row.compare),
                  row.after)
            << "operation " << row.operation;
}

TEST_F(AtomicTest, UnknownOperationsAndUnalignedAddressesAreBad) {
    const GpuVa good{kFbBase + 0x2000};
    EXPECT_EQ(perform_atomic(*port, {0x3f, good, 0, 0}).status, AtomicStatus::Bad);
    EXPECT_EQ(perform_atomic(*port, {TC_OP_ADD_64, GpuVa{kFbBase + 0x2004}, 1, 0}).status,
              AtomicStatus::Bad);
    EXPECT_EQ(perform_atomic(*port, {TC_OP_ADD_32, GpuVa{kFbBase + 0x2002}, 1, 0}).status,
              AtomicStatus::Bad);
}

TEST_F(AtomicTest, AMissingPageIsAFault) {
    EXPECT_EQ(perform_atomic(*port, {TC_OP_ADD_32, GpuVa{0x1000}, 1, 0}).status,
              AtomicStatus::Fault);
    EXPECT_TRUE(port->has_fault());
}

TEST_F(AtomicTest, TwoEnginesLoseNoUpdate) {
    constexpr int kRounds = 20000;
    rig.put<std::uint64_t>(0x2000, 0);
    const auto work = [this] {
        const auto own = rig.gpuvm->make_port(Vmid{0}, Hub::Gfx);
        for (int i = 0; i < kRounds; ++i)
            (void)perform_atomic(*own, {TC_OP_ADD_64, GpuVa{kFbBase + 0x2000}, 1, 0});
    };
    std::thread other(work);
    work();
    other.join();
    EXPECT_EQ(rig.get<std::uint64_t>(0x2000), 2u * kRounds);
}

}  // namespace
}  // namespace vgpu::softgpu::mem
