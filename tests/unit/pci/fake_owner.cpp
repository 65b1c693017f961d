// SPDX-License-Identifier: MIT
#include "tests/unit/pci/fake_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cstring>

#include "pf-driver/hw/regs.h"

namespace vgpu::softgpu::pci::test {

Result<> FakeOwner::attached(std::shared_ptr<Peer>) {
    if (refuses) return fail(EBUSY, "attached elsewhere");
    story.emplace_back("attached");
    return {};
}

void FakeOwner::reset(ResetKind kind) {
    story.emplace_back(kind == ResetKind::FunctionLevel ? "flr" : "device reset");
}

void FakeOwner::sriov_changed(const SriovState& state) {
    story.push_back(fmt::format("sriov {} vfs{}{}", state.num_vfs,
                                state.is_enabled ? " enabled" : "",
                                state.is_memory_enabled ? " memory" : ""));
}

Result<> FakeOwner::map(const vfio_user::DmaRange& range, int fd) {
    if (refuses_maps) return fail(ENOSPC, "too many maps");
    story.push_back(
        fmt::format("map {:#x}+{:#x}{}", raw(range.address), range.size, fd >= 0 ? " fd" : ""));
    return {};
}

void FakeOwner::unmap(const vfio_user::DmaRange& range) {
    story.push_back(fmt::format("unmap {:#x}+{:#x}", raw(range.address), range.size));
}

std::errc FakePeer::dma_post(Iova address, std::span<const std::byte> data) {
    EXPECT_EQ(data.size(), sizeof(std::uint32_t));
    story.push_back(fmt::format("{:#x} <- {:#x}", raw(address), load<std::uint32_t>(data)));
    return {};
}

BarHandler FakeBar::handler() {
    const auto read = [this](std::uint64_t offset, std::span<std::byte> out) {
        story.push_back(fmt::format("read {:#x}+{}", offset, out.size()));
        ASSERT_LE(offset + out.size(), bytes.size());
        std::memcpy(out.data(), bytes.data() + offset, out.size());
    };
    const auto write = [this](std::uint64_t offset, std::span<const std::byte> data) {
        story.push_back(fmt::format("write {:#x}+{}", offset, data.size()));
        ASSERT_LE(offset + data.size(), bytes.size());
        std::memcpy(bytes.data() + offset, data.data(), data.size());
    };
    const auto memory = [this]() -> std::optional<MappableMemory> {
        if (areas.empty()) return std::nullopt;
        return MappableMemory{OwnedFd(::memfd_create("bar", MFD_CLOEXEC)), areas};
    };
    return {read, write, memory};
}

Rig::Rig(FunctionSpec spec)
    : registers(HW_REG_BAR_BYTES), vram(4096), function(std::move(spec), owner, owner) {
    function.set_bar(VGPU_BAR_REGISTERS, registers.handler());
    function.set_bar(VGPU_BAR_VRAM, vram.handler());
    set_config(PCI_COMMAND, std::uint16_t{PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER});
}

void Rig::expect_no_error(std::errc error) {
    EXPECT_EQ(error, std::errc{});
}

void Rig::assign(std::uint32_t vector, int fd) {
    OwnedFd mine(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    const vfio_user::IrqRequest request{.index = function.interrupts().index(),
                                        .action = vfio_user::IrqAction::Trigger,
                                        .start = vector,
                                        .count = 1,
                                        .is_assignment = true,
                                        .fds = {&mine, 1},
                                        .is_selected = {}};
    const auto assigned = function.set_irqs(request);
    EXPECT_TRUE(assigned.has_value());
}

OwnedFd new_eventfd() {
    return OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

std::uint64_t signals(const OwnedFd& eventfd) {
    eventfd_t count = 0;
    return ::eventfd_read(eventfd.get(), &count) == 0 ? count : 0;
}

}  // namespace vgpu::softgpu::pci::test
