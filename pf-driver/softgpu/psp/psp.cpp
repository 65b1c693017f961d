// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/psp/psp.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::psp {

namespace {

constexpr RegisterIndex kIhSet{REG_MP0_MP0_SMN_C2PMSG_64};
constexpr RegisterIndex kRingCommand{REG_MP0_MP0_SMN_C2PMSG_101};
constexpr RegisterIndex kRingLow{REG_MP0_MP0_SMN_C2PMSG_102};
constexpr RegisterIndex kRingHigh{REG_MP0_MP0_SMN_C2PMSG_103};

constexpr std::uint32_t kSession = 1;
constexpr std::uint64_t kDwordBytes = sizeof(std::uint32_t);

}  // namespace

struct Psp::CommandRow {
    std::uint32_t id;
    Handler handler;
};

Psp::Psp(regs::RegisterFile& regs, mem::Port& kernel, Hooks hooks)
    : regs_(regs), kernel_(kernel), hooks_(std::move(hooks)) {
    regs_.claim(kRingCommand, 1, {},
                [this](RegisterIndex, std::uint32_t value) { on_ring_command(value); });
    regs_.claim(kIhSet, 1, {}, [this](RegisterIndex, std::uint32_t value) { on_ih_set(value); });
}

void Psp::on_ih_set(std::uint32_t value) {
    std::uint32_t status = PSP_REPLY_OK;
    if (!hooks_.is_gate_open())
        status = PSP_REPLY_REFUSED;
    else if (value != PSP_GBR_IH_SET)
        status = PSP_REPLY_BAD_COMMAND;
    if (status != PSP_REPLY_OK) ++state_.refused;
    regs_.set(kIhSet, PSP_REPLY_READY | status);
}

/// Writes READY and the status in one word, because psp_v3_1.c polls for READY and then reads the
/// status.
void Psp::on_ring_command(std::uint32_t value) {
    std::uint32_t status = PSP_REPLY_BAD_COMMAND;
    if (!hooks_.is_gate_open()) {
        status = PSP_REPLY_REFUSED;
    } else {
        switch (value & PSP_RING_COMMAND_MASK) {
            case PSP_RING_CREATE:
                status = create_ring();
                break;
            case PSP_RING_CONSUME:
                status = consume(regs_.get(kRingLow));
                break;
            case PSP_RING_DESTROY:
                state_.has_ring = 0;
                status = PSP_REPLY_OK;
                break;
            default:
                break;
        }
    }
    if (status != PSP_REPLY_OK) ++state_.refused;
    regs_.set(kRingCommand, PSP_REPLY_READY | status);
}

/// No register holds the ring's size: the driver always allocates one page, PSP_RING_DWORDS (Linux
/// 6.12, amdgpu/amdgpu_psp.c).
std::uint32_t Psp::create_ring() {
    state_.ring = join(regs_.get(kRingLow), regs_.get(kRingHigh));
    state_.ring_read_pointer = 0;
    state_.has_ring = 1;
    return PSP_REPLY_OK;
}

std::uint32_t Psp::consume(std::uint32_t write_pointer) {
    if (state_.has_ring == 0) return PSP_REPLY_BAD_COMMAND;
    const std::uint32_t end = write_pointer % PSP_RING_DWORDS / PSP_FRAME_DWORDS * PSP_FRAME_DWORDS;
    while (state_.ring_read_pointer != end) {
        const std::uint64_t address = state_.ring + state_.ring_read_pointer * kDwordBytes;
        state_.ring_read_pointer = (state_.ring_read_pointer + PSP_FRAME_DWORDS) % PSP_RING_DWORDS;
        if (run_frame(address)) continue;
        kernel_.clear_fault();
        ++state_.memory_errors;
        return PSP_REPLY_BAD_MEMORY;
    }
    return PSP_REPLY_OK;
}

/// Writes response and fence also for a refused command, because the driver waits only for the
/// fence.
bool Psp::run_frame(std::uint64_t address) {
    psp_frame frame{};
    if (!kernel_.read(GpuVa{address}, bytes_of(frame))) return false;
    const std::uint64_t buffer = join(frame.command_lo, frame.command_hi);
    psp_command command{};
    if (!kernel_.read(GpuVa{buffer}, bytes_of(command))) return false;
    ++state_.commands;
    psp_response response{};
    response.status = run_command(command);
    response.session_id = kSession;
    response.tmr_bytes = PSP_TMR_BYTES;
    if (response.status != PSP_STATUS_OK) ++state_.refused;
    if (!kernel_.write(GpuVa{buffer + PSP_RESPONSE_OFFSET}, bytes_of(response))) return false;
    // The guest polls the fence from another CPU, so the response must be visible first.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t fence = join(frame.fence_lo, frame.fence_hi);
    return kernel_.write(GpuVa{fence}, bytes_of(frame.fence_value));
}

std::uint32_t Psp::run_command(const psp_command& command) {
    static constexpr std::array<CommandRow, 4> kCommands = {{
        {PSP_CMD_LOAD_IP_FW, &Psp::load_firmware},
        {PSP_CMD_SETUP_VMR, &Psp::accept},
        {PSP_CMD_DESTROY_VMR, &Psp::accept},
        {PSP_CMD_PROG_REG, &Psp::program_register},
    }};
    const auto row = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const CommandRow& r) { return r.id == command.id; });
    return row == kCommands.end() ? PSP_STATUS_NOT_SUPPORTED : (this->*row->handler)(command);
}

/// Accepts firmware of any content, because softgpu does not execute firmware. Checks only the type
/// and the size.
std::uint32_t Psp::load_firmware(const psp_command& command) {
    const std::uint32_t bytes = command.words[PSP_LOAD_BYTES];
    const std::uint32_t type = command.words[PSP_LOAD_TYPE];
    const bool is_good = type < PSP_FIRMWARE_TYPES && bytes <= PSP_TMR_BYTES;
    return is_good ? PSP_STATUS_OK : PSP_STATUS_BAD_PARAMETERS;
}

std::uint32_t Psp::accept(const psp_command&) {
    return PSP_STATUS_OK;
}

/// In PROG_REG, the id of the register is the number of an IH ring. The command writes IH_RB_CNTL
/// of this ring.
std::uint32_t Psp::program_register(const psp_command& command) {
    const std::uint32_t id = command.words[PSP_PROG_REGISTER];
    if (id >= PSP_PROG_IH_RINGS) return PSP_STATUS_BAD_PARAMETERS;
    hooks_.program_ih(id, command.words[PSP_PROG_VALUE]);
    return PSP_STATUS_OK;
}

Result<> Psp::load(Reader& in) {
    State state;
    Result<> read = in.value(state);
    const bool is_pointer_good = state.ring_read_pointer < PSP_RING_DWORDS &&
                                 state.ring_read_pointer % PSP_FRAME_DWORDS == 0;
    if (read && !is_pointer_good)
        read = fail(EPROTO, "state stream holds a PSP ring pointer that is not at a frame");
    state_ = read ? state : State{};
    return read;
}

}  // namespace vgpu::softgpu::psp
