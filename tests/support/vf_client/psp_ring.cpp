// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/psp_ring.h"

#include <fmt/format.h>

#include <cstring>

#include "pf-driver/hw/psp.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {
namespace {

using softgpu::high32;
using softgpu::low32;

constexpr milliseconds kLimit{1200};  // 20000 polls of 60 us
constexpr std::uint32_t kVirtualAndPhysical = 2;
constexpr std::uint32_t kCommandBytes = 1024;

}  // namespace

PspRing::PspRing(VfDevice& device, VramHeap& vram)
    : device_(device),
      ring_(vram.allocate(4096)),
      command_(vram.allocate(4096)),
      fence_(vram.allocate(4096)) {}

void PspRing::set_ih_client(std::uint32_t id, std::uint32_t value) {
    device_.write(REG_MP0_MP0_SMN_C2PMSG_69, id);
    device_.write(REG_MP0_MP0_SMN_C2PMSG_70, value);
    device_.write(REG_MP0_MP0_SMN_C2PMSG_64, PSP_GBR_IH_SET);
    wait_for("PSP: GBR_IH_SET", milliseconds(100), [&] {
        return (device_.read(REG_MP0_MP0_SMN_C2PMSG_64) & 0x8000ffffu) == PSP_REPLY_READY;
    });
}

void PspRing::ring_command(std::uint32_t command) {
    device_.write(REG_MP0_MP0_SMN_C2PMSG_101, command);
    std::uint32_t reply = 0;
    wait_for(fmt::format("PSP: reply to {:#x}", command), kLimit, [&] {
        reply = device_.read(REG_MP0_MP0_SMN_C2PMSG_101);
        return (reply & PSP_REPLY_READY) != 0;
    });
    if ((reply & PSP_REPLY_STATUS_MASK) != 0)
        throw VfError(fmt::format("PSP: command {:#x} ended with {:#x}", command, reply));
}

void PspRing::create() {
    wptr_ = 0;
    fence_value_ = 0;
    fence_.store<std::uint32_t>(0, 0);
    device_.write(REG_MP0_MP0_SMN_C2PMSG_102, low32(ring_.address));
    device_.write(REG_MP0_MP0_SMN_C2PMSG_103, high32(ring_.address));
    ring_command(PSP_RING_CREATE);
}

void PspRing::destroy() {
    ring_command(PSP_RING_DESTROY);
}

void PspRing::setup_vmr(std::uint64_t address, std::uint32_t bytes) {
    submit_checked(PSP_CMD_SETUP_VMR,
                   {low32(address), high32(address), bytes, kVirtualAndPhysical, low32(address)});
}

void PspRing::load_firmware(std::uint64_t address, std::uint32_t bytes, std::uint32_t type) {
    submit_checked(PSP_CMD_LOAD_IP_FW, {low32(address), high32(address), bytes, type, 0});
}

void PspRing::program_ih(std::uint32_t ring, std::uint32_t value) {
    submit_checked(PSP_CMD_PROG_REG, {value, ring, 0, 0, 0});
}

void PspRing::submit_checked(std::uint32_t id, std::array<std::uint32_t, 5> words) {
    const auto status = submit(id, words);
    if (status != PSP_STATUS_OK)
        throw VfError(fmt::format("PSP: command {} ended with status {:#x}", id, status));
}

std::uint32_t PspRing::submit(std::uint32_t id, std::array<std::uint32_t, 5> words) {
    device_.trace().add(TraceKind::PspCommand, id, words[3]);
    psp_command command{};
    command.size = kCommandBytes;
    command.version = 1;
    command.id = id;
    std::memcpy(command.words, words.data(), sizeof command.words);
    std::memset(command_.cpu.data(), 0, kCommandBytes);
    std::memcpy(command_.cpu.data(), &command, sizeof command);

    psp_frame frame{};
    frame.command_lo = low32(command_.address);
    frame.command_hi = high32(command_.address);
    frame.command_bytes = kCommandBytes;
    frame.fence_lo = low32(fence_.address);
    frame.fence_hi = high32(fence_.address);
    frame.fence_value = ++fence_value_;
    std::memcpy(ring_.cpu.subspan(std::size_t{wptr_} * 4, sizeof frame).data(), &frame,
                sizeof frame);
    device_.flush_hdp();
    wptr_ = (wptr_ + PSP_FRAME_DWORDS) % PSP_RING_DWORDS;
    device_.write(REG_MP0_MP0_SMN_C2PMSG_102, wptr_);
    device_.write(REG_MP0_MP0_SMN_C2PMSG_101, PSP_RING_CONSUME);
    wait_for(fmt::format("PSP: fence of command {}", id), kLimit,
             [&] { return fence_.load<std::uint32_t>() == fence_value_; });
    return command_.load<std::uint32_t>(PSP_RESPONSE_OFFSET);
}

}  // namespace vgpu::test
