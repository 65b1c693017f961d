// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kMsix = 2;
constexpr std::uint32_t kTrigger = kIrqActionTrigger;

IrqSet irq_set(std::uint32_t flags, std::uint32_t start, std::uint32_t count) {
    return {.flags = flags, .index = kMsix, .start = start, .count = count};
}

TEST(VfioUserIrqs, EventfdsAreAssignedInOrder) {
    Served served;
    TestClient client = served.connect();
    const OwnedFd first = new_eventfd();
    const OwnedFd second = new_eventfd();
    const int fds[] = {first.get(), second.get()};
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs,
                              as_bytes(irq_set(kIrqDataEventfd | kTrigger, 1, 2)), fds),
              0);
    EXPECT_THAT(served.device.calls().irqs, ElementsAre("trigger 2 1+2 fds 1 1"));
}

TEST(VfioUserIrqs, AssignmentWithoutDescriptorsTakesThemAway) {
    Served served;
    TestClient client = served.connect();
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs,
                              as_bytes(irq_set(kIrqDataEventfd | kTrigger, 0, 3))),
              0);
    EXPECT_THAT(served.device.calls().irqs, ElementsAre("trigger 2 0+3 fds 0 0 0"));
}

TEST(VfioUserIrqs, MaskUnmaskTriggerReachTheDevice) {
    Served served;
    TestClient client = served.connect();
    const std::uint32_t none = kIrqDataNone;
    for (const std::uint32_t action : {kIrqActionMask, kIrqActionUnmask, kIrqActionTrigger})
        EXPECT_EQ(client.error_of(Command::DeviceSetIrqs, as_bytes(irq_set(none | action, 2, 1))),
                  0);
    const Bytes bools = join(as_bytes(irq_set(kIrqDataBool | kTrigger, 0, 3)),
                             Bytes{std::byte{1}, std::byte{0}, std::byte{1}});
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs, bools), 0);
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs, as_bytes(irq_set(none | kTrigger, 0, 0))), 0);
    EXPECT_THAT(served.device.calls().irqs,
                ElementsAre("mask 2 2+1", "unmask 2 2+1", "trigger 2 2+1",
                            "trigger 2 0+3 bools 1 0 1", "trigger 2 0+0"));
}

TEST(VfioUserIrqs, MalformedRequestsAreRefused) {
    Served served;
    TestClient client = served.connect();
    const IrqSet requests[] = {
        {.argsz = 19, .flags = kIrqDataNone | kTrigger, .index = kMsix, .count = 1},
        {.flags = kIrqDataNone | kTrigger, .index = 5, .count = 1},
        {.flags = kIrqDataNone | kTrigger, .index = ~0u, .count = 1},
        {.flags = kIrqDataNone | kTrigger, .index = 0, .count = 1},  // the type has no vectors
        irq_set(kIrqDataNone, 0, 1),
        irq_set(kTrigger, 0, 1),
        irq_set(kIrqDataNone | kIrqDataBool | kTrigger, 0, 1),
        irq_set(kIrqDataNone | kTrigger | kIrqActionMask, 0, 1),
        irq_set(kIrqDataNone | kTrigger | 1u << 6, 0, 1),
        irq_set(kIrqDataNone | kTrigger, 0, 5),
        irq_set(kIrqDataNone | kTrigger, 5, 0),
        irq_set(kIrqDataNone | kTrigger, 1, ~0u),
        irq_set(kIrqDataNone | kTrigger, ~0u, 2),
        irq_set(kIrqDataNone | kTrigger, 1, 0),
        irq_set(kIrqDataNone | kIrqActionMask, 0, 0),
        irq_set(kIrqDataBool | kTrigger, 0, 2),  // without its bytes
        irq_set(kIrqDataBool | kTrigger, 0, 0),
        irq_set(kIrqDataEventfd | kTrigger, 0, 0),
    };
    for (std::size_t i = 0; i < std::size(requests); i++)
        EXPECT_EQ(client.error_of(Command::DeviceSetIrqs, as_bytes(requests[i])), EINVAL)
            << "request " << i;
    EXPECT_TRUE(served.device.calls().irqs.empty());
}

TEST(VfioUserIrqs, DescriptorsMustMatchTheRequest) {
    Served served;
    TestClient client = served.connect();
    const OwnedFd one = new_eventfd();
    const int fds[] = {one.get(), one.get()};
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs,
                              as_bytes(irq_set(kIrqDataEventfd | kTrigger, 0, 3)), fds),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs,
                              as_bytes(irq_set(kIrqDataNone | kTrigger, 0, 2)), fds),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceSetIrqs,
                              as_bytes(irq_set(kIrqDataEventfd | kIrqActionMask, 0, 2)), fds),
              ENOTSUP);
    EXPECT_TRUE(served.device.calls().irqs.empty());
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
