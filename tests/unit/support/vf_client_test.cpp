// SPDX-License-Identifier: MIT
//
// Parts of the test driver that other tests trust.
#include <gtest/gtest.h>

#include "pf-driver/hw/pm4.h"
#include "tests/support/deadline.h"
#include "tests/support/vf_client/aql_queue.h"
#include "tests/support/vf_client/guest_memory.h"
#include "tests/support/vf_client/packets.h"
#include "tests/support/vf_client/range_allocator.h"

namespace vgpu::test {
namespace {

TEST(RangeAllocator, MergesWhatIsFreedAndHandsOutAlignedRanges) {
    RangeAllocator ranges("test", 0x1000, 0x10000);
    const auto a = ranges.allocate(0x1000);
    const auto b = ranges.allocate(0x1000, 0x4000);
    EXPECT_EQ(a, 0x1000u);
    EXPECT_EQ(b, 0x4000u);
    EXPECT_THROW((void)ranges.allocate(0x10000), VfError);
    ranges.free(a);
    ranges.free(b);
    EXPECT_EQ(ranges.free_bytes(), 0xf000u);
    EXPECT_EQ(ranges.allocate(0xf000), 0x1000u);
    EXPECT_THROW(ranges.free(0x2000), VfError);
}

TEST(GuestMemory, ReadsAndWritesOfTheFileEndWhereItWasShrunk) {
    GuestMemory ram(8192, Sealing::Unsealed);
    const auto page = ram.allocate(4096);
    std::array<std::byte, 16> data{};
    EXPECT_TRUE(ram.write_file(page + 4096, data));
    ram.shrink_to(4096);
    EXPECT_TRUE(ram.read_file(page, data));
    EXPECT_FALSE(ram.read_file(page + 4096, data));
    EXPECT_FALSE(ram.write_file(page + 4096, data));
}

TEST(KernelArgs, AreAlignedToTheirSizes) {
    const auto packed = args(std::uint32_t{1}, std::uint64_t{2}, 3.0f);
    ASSERT_EQ(packed.size(), 20u);
    std::uint64_t second = 0;
    std::memcpy(&second, packed.data() + 8, sizeof second);
    EXPECT_EQ(second, 2u);
}

TEST(Packets, HaveTheLengthThatTheirHeaderSays) {
    const std::array data{1u, 2u};
    const std::vector<Dwords> packets{pm4::set_resources(0xff00, 1, 1),
                                      pm4::map_process({}),
                                      pm4::map_queue_anywhere({}),
                                      pm4::unmap_queues(PM4_UNMAP_ALL, PM4_UNMAP_PREEMPT),
                                      pm4::query_status(0, 0),
                                      pm4::run_list(0, 1),
                                      pm4::write_memory(0, data),
                                      pm4::register_to_memory(0, 0),
                                      pm4::release_mem(0, 0, 1),
                                      pm4::acquire_mem_instruction_cache(),
                                      pm4::wait_memory(0, 0),
                                      pm4::indirect_buffer(0, 1, 0),
                                      pm4::nop(5)};
    for (const auto& packet : packets)
        EXPECT_EQ(HW_GET(PM4_HEADER, COUNT, packet[0]) + 2, packet.size())
            << "opcode " << HW_GET(PM4_HEADER, OPCODE, packet[0]);
    EXPECT_EQ(pm4::nop(0), Dwords{0xffff1000});
    // as seen from the stock driver
    EXPECT_EQ(pm4::write_and_wait_register(0xe26, 0xe27, 1, 1)[1] & 0x43u, 0x43u);
}

}  // namespace
}  // namespace vgpu::test
