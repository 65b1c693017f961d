// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/bulk_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "pf-driver/softgpu/base/owned_fd.h"
#include "tests/unit/iov/fake_vf_control.h"

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

    std::unique_ptr<mem::DeviceVram> vram = *mem::DeviceVram::create(64_MiB);
    OwnedFd memfd;
    mem::SystemMemory bus;
    FakePanels vf_control;
    BulkOps ops{*vram, bus, vf_control.list};
};

TEST_F(BulkOpsTest, ScrubAndVerifyWorkOnDeviceVram) {
    constexpr std::uint64_t kAt = 40u << 20;
    constexpr std::uint64_t kSize = 9u << 20;
    const std::byte one{1};
    for (const std::uint64_t at : {kAt - 1, kAt, kAt + kSize - 1, kAt + kSize})
        ASSERT_TRUE(vram->write(DeviceOffset{at}, std::span(&one, 1)));
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, kAt, 0, kSize}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, kPf, 0, kAt, kSize}), VGPU_OP_DONE);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, kAt, 0, kSize}), VGPU_OP_DONE);
    EXPECT_EQ(*vram->host(DeviceOffset{kAt - 1}), one);
    EXPECT_EQ(*vram->host(DeviceOffset{kAt + kSize}), one);
}

TEST_F(BulkOpsTest, DmaMovesBytesBothWays) {
    const VfId vf{3};
    const std::vector<std::byte> pattern(200000, std::byte{0x5a});
    ASSERT_TRUE(bus.write(kBus, pattern));
    EXPECT_EQ(run({VGPU_OP_DMA_IN, vf, raw(kBus), 4096, pattern.size()}), VGPU_OP_DONE);
    EXPECT_EQ(vf_control.vram(vf)[4095], std::byte{0});
    EXPECT_EQ(vf_control.vram(vf)[4096 + 199999], std::byte{0x5a});
    EXPECT_EQ(vf_control.vram(vf)[4096 + 200000], std::byte{0});
    EXPECT_EQ(run({VGPU_OP_DMA_OUT, vf, 4096, raw(kBus) + 400000, pattern.size()}), VGPU_OP_DONE);
    std::vector<std::byte> back(pattern.size());
    ASSERT_TRUE(bus.read(Iova{raw(kBus) + 400000}, back));
    EXPECT_EQ(back, pattern);
}

TEST_F(BulkOpsTest, OperationsOnAVfStayInItsVram) {
    const VfId vf{2};
    constexpr std::uint64_t kEnd = FakePanels::kVramBytes;
    std::ranges::fill(vf_control.vram(vf), std::byte{1});
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, vf, 0, 4096, 70000}), VGPU_OP_DONE);
    EXPECT_EQ(vf_control.vram(vf)[4095], std::byte{1});
    EXPECT_EQ(std::ranges::count(vf_control.vram(vf), std::byte{0}), 70000);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, vf, 0, kEnd - 4, 8}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_IN, vf, raw(kBus), kEnd - 4, 8}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_OUT, vf, kEnd - 4, raw(kBus), 8}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, RangesOutsideMemoryAreRefused) {
    const std::uint64_t end = 64u << 20;
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, kPf, 0, end - 4096, 8192}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, kPf, 0, ~0ull - 100, 8192}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, kPf, end, 0, 1}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_IN, VfId{1}, 0x90000000, 0, 4096}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_OUT, VfId{1}, 0, 0x90000000, 4096}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, UnknownOperationsAndVfsAreRefused) {
    EXPECT_EQ(run({99, kPf, 0, 0, 4096}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_VRAM, VfId{5}, 0, 0, 4096}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_SCRUB_STATE, kPf, 0, 0, 0}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_DMA_IN, kPf, raw(kBus), 0, 4096}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_VERIFY_ZERO, VfId{1}, 0, 0, 4096}), VGPU_OP_REFUSED);
    EXPECT_EQ(run({VGPU_OP_NONE, kPf, 0, 0, 0}), VGPU_OP_DONE);
}

TEST_F(BulkOpsTest, StateTravelsThroughBusMemory) {
    vf_control.state.assign(5000, std::byte{7});
    EXPECT_EQ(run({VGPU_OP_SAVE_STATE, VfId{1}, 0, raw(kBus), kBusBytes}), VGPU_OP_DONE);
    EXPECT_EQ(ops.size(), 5000u);
    EXPECT_EQ(run({VGPU_OP_LOAD_STATE, VfId{1}, raw(kBus), 0, 5000}), VGPU_OP_DONE);
    EXPECT_EQ(vf_control.loaded, vf_control.state);
    EXPECT_EQ(run({VGPU_OP_SAVE_STATE, VfId{1}, 0, raw(kBus), 4999}), VGPU_OP_REFUSED);
    EXPECT_EQ(ops.size(), 5000u) << "so much it takes";
    EXPECT_EQ(run({VGPU_OP_LOAD_STATE, VfId{1}, raw(kBus), 0, ~0ull}), VGPU_OP_REFUSED);
}

TEST_F(BulkOpsTest, OneOperationAtATime) {
    ops.start({VGPU_OP_SCRUB_STATE, VfId{1}, 0, 0, 0});
    ops.start({VGPU_OP_SCRUB_STATE, VfId{2}, 0, 0, 0});
    ops.run_pending();
    ops.run_pending();
    EXPECT_EQ(vf_control.calls, std::vector<std::string>{"scrub 1"});
}

TEST_F(BulkOpsTest, TheOpThreadWorksUntilItIsStopped) {
    std::thread thread([this] { ops.run(); });
    for (int i = 0; i < 10; ++i) {
        ops.start({VGPU_OP_SCRUB_STATE, VfId{1}, 0, 0, 0});
        while (ops.status() == VGPU_OP_BUSY) std::this_thread::yield();
    }
    ops.stop();
    thread.join();
    EXPECT_EQ(vf_control.calls.size(), 10u);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
