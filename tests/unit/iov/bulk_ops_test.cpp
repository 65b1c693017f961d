// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/bulk_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "tests/unit/iov/fake_panel.h"

namespace vgpu::softgpu::iov {
namespace {

constexpr Iova kBus{0x100000};
constexpr std::uint64_t kBusBytes = 1u << 20;

class BulkOpsTest : public ::testing::Test {
protected:
    BulkOpsTest() {
        memfd = OwnedFd(memfd_create("bus", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        EXPECT_EQ(ftruncate(memfd.get(), kBusBytes), 0);
        EXPECT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
        constexpr auto kAccess = static_cast<std::uint8_t>(mem::Access::Read) |
                                 static_cast<std::uint8_t>(mem::Access::Write);
        EXPECT_TRUE(bus.map({kBus, {kBusBytes}, memfd.get(), 0, kAccess}));
    }
    vgpu_hw_op_status run(BulkOps::Request request) {
        ops.start(request);
        EXPECT_EQ(ops.status(), VGPU_OP_BUSY);
        ops.run_pending();
        return ops.status();
    }
    std::uint32_t vram_dword(std::uint64_t offset) {
        std::uint32_t value = 0;
        EXPECT_TRUE(vram->read(DeviceOffset{offset}, bytes_of(value)));
        return value;
    }

    std::unique_ptr<mem::DeviceVram> vram = *mem::DeviceVram::create(64_MiB);
    OwnedFd memfd;
    mem::SystemMemory bus;
    FakePanels panel;
    BulkOps ops{*vram, bus, panel.list};
};

TEST_F(BulkOpsTest, FillCopyAndVerifyWorkOnDeviceVram) {
    constexpr std::uint64_t kA = 20u << 20;
    constexpr std::uint64_t kB = 40u << 20;
    EXPECT_EQ(run({VGPU_OP_FILL, kPf, 0, kA, 9u << 20, 0xabcd1234}), VGPU_OP_DONE);
    EXPECT_EQ(vram_dword(kA), 0xabcd1234u);
    EXPECT_EQ(vram_dword(kA + (9u << 20) - 4), 0xabcd1234u);
    EXPECT_EQ(vram_dword(kA + (9u << 20)), 0u);
    EXPECT_EQ(run({VGPU_OP_COPY, kPf, kA, kB, 4096, 0}), VGPU_OP_DONE);
    EXPECT_EQ(vram_dword(kB + 4092), 0xabcd1234u);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, kB, 0, 8192, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, kPf, 0, kB, 2u << 20, 0}), VGPU_OP_DONE);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, kB, 0, 8192, 0}), VGPU_OP_DONE);
}

TEST_F(BulkOpsTest, DmaMovesBytesBothWays) {
    const std::vector<std::byte> pattern(200000, std::byte{0x5a});
    ASSERT_TRUE(bus.write(kBus, pattern));
    EXPECT_EQ(run({VGPU_OP_DMA_IN, kPf, raw(kBus), 17u << 20, pattern.size(), 0}), VGPU_OP_DONE);
    EXPECT_EQ(vram_dword((17u << 20) + 199996), 0x5a5a5a5au);
    EXPECT_EQ(run({VGPU_OP_DMA_OUT, kPf, 17u << 20, raw(kBus) + 400000, pattern.size(), 0}),
              VGPU_OP_DONE);
    std::vector<std::byte> back(pattern.size());
    ASSERT_TRUE(bus.read(Iova{raw(kBus) + 400000}, back));
    EXPECT_EQ(back, pattern);
}

TEST_F(BulkOpsTest, OperationsOnAVfStayInItsVram) {
    const VfId vf{2};
    EXPECT_EQ(run({VGPU_OP_FILL, vf, 0, 4096, 70000, 0x01010101}), VGPU_OP_DONE);
    EXPECT_EQ(panel.vram(vf)[4096], std::byte{1});
    EXPECT_EQ(panel.vram(vf)[4095], std::byte{0});
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, vf, 0, 0, 8192, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, vf, 0, 0, FakePanels::kVramBytes, 0}), VGPU_OP_DONE);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, vf, 0, 0, FakePanels::kVramBytes, 0}), VGPU_OP_DONE);
    EXPECT_EQ(run({VGPU_OP_FILL, vf, 0, FakePanels::kVramBytes - 4, 8, 0}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, RangesOutsideMemoryAreRefused) {
    const std::uint64_t end = 64u << 20;
    for (const std::uint32_t op : {VGPU_OP_FILL, VGPU_OP_SCRUB_VRAM}) {
        EXPECT_EQ(run({op, kPf, 0, end - 4096, 8192, 0}), VGPU_OP_REFUSED);
        EXPECT_EQ(run({op, kPf, 0, ~0ull - 100, 8192, 0}), VGPU_OP_REFUSED);
    }
    EXPECT_EQ(run({VGPU_OP_COPY, kPf, end, 0, 4096, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, end, 0, 1, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_IN, kPf, 0x90000000, 0, 4096, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_OUT, kPf, 0, 0x90000000, 4096, 0}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, UnknownOperationsAndVfsAreRefused) {
    EXPECT_EQ(run({99, kPf, 0, 0, 4096, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_FILL, VfId{5}, 0, 0, 4096, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_STATE, kPf, 0, 0, 0, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_NONE, kPf, 0, 0, 0, 0}), VGPU_OP_DONE);
}

TEST_F(BulkOpsTest, StateTravelsThroughBusMemory) {
    panel.state.assign(5000, std::byte{7});
    EXPECT_EQ(run({VGPU_OP_SAVE_STATE, VfId{1}, 0, raw(kBus), kBusBytes, 0}), VGPU_OP_DONE);
    EXPECT_EQ(ops.size(), 5000u);
    EXPECT_EQ(run({VGPU_OP_LOAD_STATE, VfId{1}, raw(kBus), 0, 5000, 0}), VGPU_OP_DONE);
    EXPECT_EQ(panel.loaded, panel.state);
    EXPECT_EQ(run({VGPU_OP_SAVE_STATE, VfId{1}, 0, raw(kBus), 4999, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(ops.size(), 5000u) << "so much it takes";
    EXPECT_EQ(run({VGPU_OP_LOAD_STATE, VfId{1}, raw(kBus), 0, ~0ull, 0}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, OneOperationAtATime) {
    ops.start({VGPU_OP_SCRUB_STATE, VfId{1}, 0, 0, 0, 0});
    ops.start({VGPU_OP_SCRUB_STATE, VfId{2}, 0, 0, 0, 0});
    ops.run_pending();
    ops.run_pending();
    EXPECT_EQ(panel.calls, std::vector<std::string>{"scrub 1"});
}

TEST_F(BulkOpsTest, TheOpThreadWorksUntilItIsStopped) {
    std::thread thread([this] { ops.run(); });
    for (int i = 0; i < 10; ++i) {
        ops.start({VGPU_OP_SCRUB_STATE, VfId{1}, 0, 0, 0, 0});
        while (ops.status() == VGPU_OP_BUSY) std::this_thread::yield();
    }
    ops.stop();
    thread.join();
    EXPECT_EQ(panel.calls.size(), 10u);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
