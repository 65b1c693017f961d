// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/interrupts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include "tests/unit/pci/fake_owner.h"

namespace vgpu::softgpu::pci::test {
namespace {

using vfio_user::Irq;
using vfio_user::IrqAction;

constexpr std::uint32_t kMsiControl = VGPU_CAP_MSI + PCI_MSI_FLAGS;
constexpr std::uint32_t kMsixControl = VGPU_CAP_MSIX + PCI_MSIX_FLAGS;
constexpr std::uint32_t kRegisters = VGPU_BAR_REGISTERS;
constexpr std::uint64_t kVectorControl = VGPU_MSIX_TABLE_OFFSET + PCI_MSIX_ENTRY_VECTOR_CTRL;

Result<> act(Rig& rig, IrqAction action, std::uint32_t start, std::uint32_t count) {
    return rig.function.set_irqs({.index = rig.function.interrupts().index(),
                                  .action = action,
                                  .start = start,
                                  .count = count,
                                  .is_assignment = false,
                                  .fds = {},
                                  .is_selected = {}});
}

TEST(PciMsi, RaisedInterruptReachesTheEventfd) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 1u);
    EXPECT_EQ(rig.function.interrupts().delivered(), 1u);
}

TEST(PciMsi, AssigningEnablesTheCapabilityAndDisablingEndsIt) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    EXPECT_NE(rig.config<std::uint16_t>(kMsiControl) & PCI_MSI_FLAGS_ENABLE, 0);
    ASSERT_TRUE(act(rig, IrqAction::Trigger, 0, 0));
    EXPECT_EQ(rig.config<std::uint16_t>(kMsiControl) & PCI_MSI_FLAGS_ENABLE, 0);
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
}

TEST(PciMsi, IsLostWhileTheDriverHasItDisabled) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.set_config(kMsiControl, std::uint16_t{0});
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
    rig.set_config(kMsiControl, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    EXPECT_EQ(signals(event), 0u);
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 1u);
    EXPECT_EQ(rig.function.interrupts().lost(), 1u);
}

TEST(PciMsi, NeedsBusMastering) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY});
    EXPECT_FALSE(rig.function.is_bus_master());
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
    rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
    EXPECT_TRUE(rig.function.is_bus_master());
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsi, VectorsThatDoNotExistAreCountedAndDropped) {
    Rig rig = Rig::vf();
    rig.function.raise(1);
    rig.function.raise(~0u);
    EXPECT_EQ(rig.function.interrupts().lost(), 2u);
}

TEST(PciMsi, MaskedByTheClientItWaits) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    ASSERT_TRUE(act(rig, IrqAction::Mask, 0, 1));
    rig.function.raise(0);
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
    ASSERT_TRUE(act(rig, IrqAction::Unmask, 0, 1));
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsi, ClientMayTriggerItsOwnEventfd) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    ASSERT_TRUE(act(rig, IrqAction::Trigger, 0, 1));
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsi, OnlyEventfdsAreAccepted) {
    Rig rig = Rig::vf();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const OwnedFd read_end(pipe[0]);
    OwnedFd write_end(pipe[1]);
    const auto refused = rig.function.set_irqs({.index = Irq::Msi,
                                                .action = IrqAction::Trigger,
                                                .start = 0,
                                                .count = 1,
                                                .is_assignment = true,
                                                .fds = {&write_end, 1},
                                                .is_selected = {}});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, EINVAL);
    EXPECT_EQ(rig.config<std::uint16_t>(kMsiControl) & PCI_MSI_FLAGS_ENABLE, 0);
}

/// What a client does that would like the device to wait for it; it has the same open file.
void fill_and_block(const OwnedFd& event) {
    const std::uint64_t full = ~0ull - 1;
    ASSERT_EQ(::write(event.get(), &full, sizeof(full)), ssize_t{sizeof(full)});
    ASSERT_EQ(::fcntl(event.get(), F_SETFL, 0), 0);
}

TEST(PciMsi, AFullEventfdDoesNotBlockTheDevice) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    fill_and_block(event);
    rig.assign(0, event.get());
    auto raised = std::async(std::launch::async, [&] { rig.function.raise(0); });
    EXPECT_EQ(raised.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_GE(signals(event), ~0ull - 1);  // and a raise that waits goes on
}

TEST(PciMsi, AnEventfdThatTheClientMakesBlockAfterwardsHoldsUpNobody) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    fill_and_block(event);
    auto raised = std::async(std::launch::async, [&] {
        for (int i = 0; i < 1000; i++) rig.function.raise(0);
        EXPECT_TRUE(act(rig, IrqAction::Trigger, 0, 1));
    });
    EXPECT_EQ(raised.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_GE(signals(event), ~0ull - 1);  // and a raise that waits goes on
    EXPECT_EQ(rig.function.interrupts().delivered(), 1000u);
}

TEST(PciMsi, EveryOneOfManySignalsIsCounted) {
    constexpr std::uint64_t kEach = 5000;  // more than requests can be under way
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    std::vector<std::thread> engines;
    for (int i = 0; i < 3; i++)
        engines.emplace_back([&] {
            for (std::uint64_t n = 0; n < kEach; n++) rig.function.raise(0);
        });
    for (auto& engine : engines) engine.join();
    EXPECT_EQ(signals(event), 3 * kEach);
    EXPECT_EQ(rig.function.interrupts().lost(), 0u);
}

TEST(PciMsi, MayBeRaisedFromAnyThreadWhileTheClientComesAndGoes) {
    Rig rig = Rig::vf();
    const OwnedFd event = new_eventfd();
    std::atomic<bool> stop{false};
    std::vector<std::thread> engines;
    for (int i = 0; i < 2; i++)
        engines.emplace_back([&] {
            while (!stop) rig.function.raise(0);
        });
    for (int i = 0; i < 200; i++) {
        rig.set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MASTER});
        rig.assign(0, event.get());
        ASSERT_TRUE(act(rig, IrqAction::Mask, 0, 1));
        ASSERT_TRUE(act(rig, IrqAction::Unmask, 0, 1));
        rig.function.detach();
    }
    stop = true;
    for (auto& engine : engines) engine.join();
}

TEST(PciMsix, EachVectorHasItsEventfd) {
    Rig rig = Rig::pf();
    const OwnedFd first = new_eventfd();
    const OwnedFd second = new_eventfd();
    rig.assign(0, first.get());
    rig.assign(1, second.get());
    rig.function.raise(1);
    EXPECT_EQ(signals(first), 0u);
    EXPECT_EQ(signals(second), 1u);
}

TEST(PciMsix, TableEntriesNobodyWroteDoNotMask) {
    Rig rig = Rig::pf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    EXPECT_EQ(rig.bar<std::uint32_t>(kRegisters, kVectorControl), 1u);  // as after reset
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsix, MaskedVectorIsPendingUntilUnmasked) {
    Rig rig = Rig::pf();
    const OwnedFd event = new_eventfd();
    constexpr std::uint64_t kSecond = kVectorControl + PCI_MSIX_ENTRY_SIZE;
    rig.assign(1, event.get());
    rig.set_bar(kRegisters, kSecond, std::uint32_t{1});
    rig.function.raise(1);
    rig.function.raise(1);
    EXPECT_EQ(signals(event), 0u);
    EXPECT_EQ(rig.bar<std::uint64_t>(kRegisters, VGPU_MSIX_PBA_OFFSET), 2u);
    rig.set_bar(kRegisters, kSecond, std::uint32_t{0});
    EXPECT_EQ(signals(event), 1u);
    EXPECT_EQ(rig.bar<std::uint64_t>(kRegisters, VGPU_MSIX_PBA_OFFSET), 0u);
}

TEST(PciMsix, DisablingTheIndexLeavesTheTable) {
    Rig rig = Rig::pf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.set_bar(kRegisters, kVectorControl, std::uint32_t{1});
    ASSERT_TRUE(act(rig, IrqAction::Trigger, 0, 0));
    rig.assign(0, event.get());
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u) << "the entry is still masked";
    rig.set_bar(kRegisters, kVectorControl, std::uint32_t{0});
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsix, FunctionMaskHoldsAllVectors) {
    Rig rig = Rig::pf();
    const OwnedFd event = new_eventfd();
    rig.assign(0, event.get());
    rig.set_config(kMsixControl, std::uint16_t{PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL});
    rig.function.raise(0);
    EXPECT_EQ(signals(event), 0u);
    EXPECT_EQ(rig.bar<std::uint8_t>(kRegisters, VGPU_MSIX_PBA_OFFSET), 1u);
    rig.set_config(kMsixControl, std::uint16_t{PCI_MSIX_FLAGS_ENABLE});
    EXPECT_EQ(signals(event), 1u);
}

TEST(PciMsix, TableHoldsWhatIsWrittenButReservedBits) {
    Rig rig = Rig::pf();
    rig.set_bar(kRegisters, VGPU_MSIX_TABLE_OFFSET, std::uint64_t{0xfee00000});
    rig.set_bar(kRegisters, VGPU_MSIX_TABLE_OFFSET + PCI_MSIX_ENTRY_DATA, ~0ull);
    EXPECT_EQ(rig.bar<std::uint64_t>(kRegisters, VGPU_MSIX_TABLE_OFFSET), 0xfee00000u);
    EXPECT_EQ(rig.bar<std::uint64_t>(kRegisters, VGPU_MSIX_TABLE_OFFSET + PCI_MSIX_ENTRY_DATA),
              0x1ffffffffull);
}

TEST(PciMsix, PendingBitsAreReadOnly) {
    Rig rig = Rig::pf();
    rig.set_bar(kRegisters, VGPU_MSIX_PBA_OFFSET, ~0ull);
    EXPECT_EQ(rig.bar<std::uint64_t>(kRegisters, VGPU_MSIX_PBA_OFFSET), 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::pci::test
