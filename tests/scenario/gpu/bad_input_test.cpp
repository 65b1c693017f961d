// SPDX-License-Identifier: MIT
//
// Malformed input of every kind gives a clear error or the hardware's answer, and is counted. No
// other VF loses anything.
#include <gtest/gtest.h>

#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

using softgpu::bytes_of;
using wire::Command;

struct BadInput : ::testing::Test {
    BadInput() {
        stack.provision(1);
        stack.provision(2);
    }
    /// Checks that VF2 computes and that both programs still run.
    void expect_neighbour_well() {
        Guest neighbour(stack, 2);
        EXPECT_EQ(neighbour.run_all(), "");
        EXPECT_TRUE(stack.softgpu().is_running());
        EXPECT_TRUE(stack.pf_process().is_running());
    }
    GpuStack stack;
};

TEST_F(BadInput, VfioUserMessagesOutOfRangeAreAnsweredWithErrors) {
    Connection connection(stack.vf_socket(1));
    const auto refused = [&](Command command, std::span<const std::byte> body) {
        return connection.transact(command, body).error != 0;
    };
    const wire::RegionAccess no_region{0, 77, 4};
    EXPECT_TRUE(refused(Command::RegionRead, bytes_of(no_region)));
    const wire::RegionAccess far{~0ull - 3, 5, 4};
    EXPECT_TRUE(refused(Command::RegionRead, bytes_of(far)));
    const wire::RegionAccess huge{0, 0, 0xfffffff0};
    EXPECT_TRUE(refused(Command::RegionRead, bytes_of(huge)));
    const wire::DmaMap wraps{sizeof wraps, 3, 0, ~0ull - 4095, 8192};
    EXPECT_TRUE(refused(Command::DmaMap, bytes_of(wraps)));
    const wire::DmaUnmap unknown{sizeof unknown, 0, 0x1000, 0x1000};
    EXPECT_TRUE(refused(Command::DmaUnmap, bytes_of(unknown)));
    const wire::SetIrqs many{sizeof many, 0x24, 1, 0, 0xffff};
    EXPECT_TRUE(refused(Command::SetIrqs, bytes_of(many)));
    const wire::RegionInfo no_index{sizeof no_index, 0, 1000, 0, 0, 0};
    EXPECT_TRUE(refused(Command::GetRegionInfo, bytes_of(no_index)));
    EXPECT_TRUE(refused(static_cast<Command>(9999), {}));
    EXPECT_TRUE(refused(Command::DmaMap, {}));
    // the connection still works
    EXPECT_EQ(connection.region(5).size, 0x80000u);
    expect_neighbour_well();
}

TEST_F(BadInput, VfioUserFramingThatCannotBeFollowedEndsTheConnectionOnly) {
    const std::array<wire::Header, 3> headers{{
        {1, 9, 4, 0, 0},           // smaller than a header
        {1, 9, 0xffffffff, 0, 0},  // larger than any message
        {1, 9, 1u << 30, 0, 0},
    }};
    for (const auto& header : headers) {
        Connection connection(stack.vf_socket(1));
        connection.send_raw(bytes_of(header));
        EXPECT_TRUE(connection.closed_by_server(milliseconds(5000))) << header.size;
    }
    {
        Connection half(stack.vf_socket(1), Connection::Unnegotiated{});
        const std::array<std::byte, 7> part{};
        half.send_raw(part);
    }
    VfClient(stack.vf_socket(1)).boot();
    expect_neighbour_well();
}

TEST_F(BadInput, SecondClientOfAVfIsTurnedAway) {
    Guest guest(stack, 1);
    EXPECT_THROW(Connection second(stack.vf_socket(1)), VfError);
    EXPECT_EQ(guest.run_all(), "");
}

TEST_F(BadInput, Pm4PacketThatDoesNotExistStopsItsQueueOnly) {
    Guest guest(stack, 1);
    auto& ring = guest.client.compute(0);
    const std::array body{0u};
    EXPECT_FALSE(ring.try_sync(pm4::packet(0xee, body), milliseconds(300)));
    EXPECT_GE(stack.pf().vf(1).bad_packets, 1u);
    guest.client.ih().wait(
        [](const IvEntry& entry) {
            return entry.client_id == IH_CLIENT_GRBM_CP &&
                   entry.source_id == IH_SOURCE_CP_BAD_OPCODE;
        },
        milliseconds(5000));
    guest.client.compute(1).sync();
    EXPECT_EQ(guest.run_all(), "");
    expect_neighbour_well();
}

TEST_F(BadInput, Pm4PacketsOfWrongLengthStopTheirQueueOnly) {
    Guest guest(stack, 1);
    auto packet = pm4::release_mem(guest.client.compute(0).scratch().address, 1, 0);
    packet.resize(3);
    packet[0] = PM4_HEADER_OF(PM4_OP_RELEASE_MEM, 2u);
    EXPECT_FALSE(guest.client.compute(0).try_sync(packet, milliseconds(300)));
    EXPECT_GE(stack.pf().vf(1).bad_packets, 1u);
    EXPECT_EQ(guest.run_all(), "");
    expect_neighbour_well();
}

TEST_F(BadInput, IbThatCallsItselfEndsByTheNestingLimit) {
    Guest guest(stack, 1);
    const auto ib = guest.client.gart().allocate(4096);
    const auto call = pm4::indirect_buffer(ib.address, 4, 0);
    ib.fill_from(std::span<const std::uint32_t>(call));
    (void)guest.client.compute(0).try_sync(call, milliseconds(300));
    EXPECT_EQ(guest.run_all(), "");
    expect_neighbour_well();
}

TEST_F(BadInput, RunListOfGarbageHarmsItsOwnVfOnly) {
    Guest guest(stack, 1);
    const auto list = guest.client.gart().allocate(4096);
    for (std::uint64_t at = 0; at < 4096; at += 4)
        list.store(at, static_cast<std::uint32_t>(at * 2654435761u));
    (void)guest.client.hiq().try_sync(pm4::run_list(list.address, 1024), milliseconds(300));
    (void)guest.client.hiq().try_sync(pm4::run_list(0x1ffffffff000, 0xfffff), milliseconds(300));
    expect_neighbour_well();
}

struct BadAql {
    const char* name;
    std::function<void(aql_kernel_dispatch&)> damage;
    std::uint64_t error;
};

TEST_F(BadInput, AqlPacketsAreRefusedWithTheErrorOfTheHardware) {
    const std::vector<BadAql> cases{
        {"type", [](auto& p) { p.header = 0x1f; }, AQL_QUEUE_ERROR_PACKET},
        {"dimensions", [](auto& p) { p.grid_size_y = 0; }, AQL_QUEUE_ERROR_DIMENSIONS},
        {"group", [](auto& p) { p.workgroup_size_x = p.workgroup_size_y = 256; },
         AQL_QUEUE_ERROR_WORKGROUP_SIZE},
        {"lds", [](auto& p) { p.group_segment_size = 1u << 20; }, AQL_QUEUE_ERROR_GROUP_MEMORY},
        {"object", [](auto& p) { p.kernel_object = 0; }, AQL_QUEUE_ERROR_CODE_OBJECT},
    };
    Guest guest(stack, 1);
    const auto kernel = guest.process->load(kernel_file("endless"), "endless");
    for (const auto& bad : cases) {
        auto& queue = guest.process->create_queue();
        aql_kernel_dispatch packet{};
        packet.header = static_cast<std::uint16_t>(AQL_TYPE_KERNEL_DISPATCH);
        packet.setup = 3;
        packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
        packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 1;
        packet.kernel_object = kernel.descriptor;
        bad.damage(packet);
        AqlPacket bytes;
        std::memcpy(bytes.data(), &packet, sizeof packet);
        queue.submit(bytes);
        EXPECT_EQ(guest.process->wait_queue_error(queue), bad.error) << bad.name;
        guest.process->destroy_queue(queue);
    }
    EXPECT_GE(stack.pf().vf(1).bad_packets, cases.size());
    EXPECT_EQ(guest.run_all(), "");
    expect_neighbour_well();
}

TEST_F(BadInput, AqlDoorbellsAndIndexesOutOfRangeAreHarmless) {
    Guest guest(stack, 1);
    guest.queue->ring_with(~0ull);
    guest.queue->ring_with(0x8000000000000000);
    for (const std::uint32_t index : {0x0u, 0x6u, 0x1e0u, 0xc00u, 0x1001u, 0x7fffeu, 0x5555u})
        guest.client.device().doorbell32(index, 0xffffffff);
    std::array<std::byte, 3> odd{};
    guest.client.device().connection().write_posted(2, 1, odd);
    expect_neighbour_well();
}

TEST_F(BadInput, SdmaPacketThatDoesNotExistStopsItsQueueOnly) {
    Guest guest(stack, 1);
    auto& bad = guest.process->create_sdma_queue(0);
    bad.push({0x000000fe, 1, 2, 3});
    wait_for("the packet to be counted", milliseconds(5000),
             [&] { return stack.pf().vf(1).bad_packets >= 1; });
    const auto from = guest.process->allocate(4096);
    const auto to = guest.process->allocate(4096);
    from.store<std::uint32_t>(0, 42);
    const auto done = guest.process->create_signal();
    guest.process->create_sdma_queue(1).copy(to.address, from.address, 4096, done);
    guest.process->wait(done);
    EXPECT_EQ(to.load<std::uint32_t>(), 42u);
    guest.client.sdma(0).sync();
    expect_neighbour_well();
}

TEST_F(BadInput, PageTableThatPointsIntoItselfIsBounded) {
    Guest guest(stack, 1);
    const auto page = guest.process->allocate(4096);
    auto& tables = guest.process->tables();
    const auto root = tables.root();
    for (unsigned level = 3; level >= 1; --level) tables.set_entry(page.address, level, root);
    guest.client.device().flush_hdp();
    guest.process->flush_tlb();
    expect_neighbour_well();
}

TEST_F(BadInput, RegistersTakeAnyValueWithoutHarm) {
    VfClient vf(stack.vf_socket(1));
    auto& device = vf.device();
    for (std::uint32_t reg = 0; reg < HW_REG_COUNT; reg += 7) device.write(reg, 0xffffffff);
    // the range of the PF is not the VF's
    EXPECT_EQ(device.read(REG_VGPU_ID), 0u);
    EXPECT_EQ(device.read(REG_VGPU_VF0_GATES + HW_VGPU_BANK_STRIDE), 0u);
    expect_neighbour_well();
}

TEST_F(BadInput, UapiRequestsOutOfRangeNameWhatIsWrong) {
    auto& pf = stack.pf();
    const auto refusal = [&](auto act) -> std::string {
        try {
            act();
        } catch (const VfError& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_NE(refusal([&] { (void)pf.vf(17); }), "");
    EXPECT_NE(refusal([&] { (void)pf.vf(0); }), "");
    EXPECT_NE(refusal([&] { pf.provision(3, 1ull << 40); }), "");
    EXPECT_NE(refusal([&] { pf.provision(3, 12345); }), "");
    EXPECT_NE(refusal([&] { pf.provision(1, 32u << 20); }), "");
    EXPECT_NE(refusal([&] { pf.set_run_table({{9, 1000}}); }), "");
    EXPECT_NE(refusal([&] { pf.set_run_table({{1, 1}}); }), "");
    EXPECT_NE(pf.call(9999, {}).error, 0);
    expect_neighbour_well();
}

}  // namespace
}  // namespace vgpu::test
