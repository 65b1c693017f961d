// SPDX-License-Identifier: MIT
//
// kill -9 of each process: no other process has to be restarted, and reported states are true.
#include <gtest/gtest.h>

#include "pf-driver/hw/regs.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

TEST(Recovery, RestartedPfCoreAdoptsRunningVfs) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    const auto first = start_endless(one);
    const auto second = start_endless(two);
    wait_progress(first);
    const auto before = stack.pf().vf(1);
    const auto boot = stack.pf().info().boot_id;
    stack.kill_pf();
    EXPECT_TRUE(stack.softgpu().is_running());
    stack.start_pf();
    const auto after = stack.pf().vf(1);
    EXPECT_NE(stack.pf().info().boot_id, boot);
    EXPECT_EQ(after.generation, before.generation);
    EXPECT_EQ(after.vram_bytes, before.vram_bytes);
    EXPECT_TRUE(std::ranges::equal(after.uuid, before.uuid));
    EXPECT_EQ(after.flrs, before.flrs);
    wait_progress(first);
    wait_progress(second);
    // and the VFs work without a new boot of their guests
    auto& process = one.client.create_process();
    EXPECT_EQ(run_programs(process, process.create_queue(), {"array_increment"}), "");
}

TEST(Recovery, LossOfTheDeviceIsSaidAndItsReturnNeedsNoOtherRestart) {
    GpuStack stack;
    stack.provision(1);
    {
        Guest guest(stack, 1);
        EXPECT_EQ(guest.run_all(), "");
    }
    stack.kill_softgpu();
    wait_for("vgpu-pf to notice", milliseconds(5000),
             [&] { return stack.pf().info().device_lost == 1; });
    EXPECT_THROW(stack.pf().provision(2, 32u << 20), VfError);
    EXPECT_TRUE(stack.pf_process().is_running());
    stack.start_softgpu();
    wait_for("vgpu-pf to find the device again", milliseconds(10000),
             [&] { return stack.pf().info().device_lost == 0; });
    EXPECT_EQ(stack.pf().vf(1).vram_bytes, 32u << 20);
    Guest again(stack, 1);
    EXPECT_EQ(again.run_all(), "");
}

TEST(Recovery, GuestOfALostDeviceGetsAnErrorNotAHang) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    stack.kill_softgpu();
    EXPECT_THROW((void)guest.client.device().read(REG_NBIO_RCC_CONFIG_MEMSIZE), VfError);
}

TEST(Recovery, SecondSoftgpuInTheSameDirectoryIsRefused) {
    GpuStack stack;
    const auto second =
        run({program("softgpu"), "--name=gpu0", "--socket-dir=" + stack.dir().path().string()});
    EXPECT_NE(second.status, 0);
    EXPECT_NE(second.out.find(stack.dir().path().string()), std::string::npos) << second.out;
    stack.provision(1);
    VfClient(stack.vf_socket(1)).boot();
}

TEST(Recovery, SecondPfCoreOnTheSameDeviceIsRefused) {
    GpuStack stack;
    const auto second = run({program("vgpu-pf"), "--device", stack.pf_socket(), "--socket",
                             stack.dir().file("second.sock"), "--name", "gpu0"});
    EXPECT_NE(second.status, 0);
    EXPECT_FALSE(second.out.empty());
    EXPECT_EQ(stack.pf().info().device_lost, 0u);
    stack.provision(1);
    VfClient(stack.vf_socket(1)).boot();
}

TEST(Recovery, VanishedGuestLeavesItsVfClean) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest neighbour(stack, 2);
    for (int i = 0; i < 3; ++i) {
        Guest guest(stack, 1);
        wait_progress(start_endless(guest));
    }
    Guest last(stack, 1);
    EXPECT_EQ(last.run_all(), "");
    EXPECT_EQ(neighbour.run_all(), "");
}

}  // namespace
}  // namespace vgpu::test
