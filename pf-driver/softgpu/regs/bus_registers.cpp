// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/bus_registers.h"

#include <algorithm>
#include <span>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {

BusRegisters::BusRegisters(RegisterFile& registers) : registers_(registers) {
    registers_.claim(
        RegisterIndex{REG_NBIO_PCIE_DATA2}, 1,
        [this](RegisterIndex, std::uint32_t) { return smn_read(); },
        [this](RegisterIndex, std::uint32_t value) { smn_write(value); });
    registers_.claim(RegisterIndex{REG_NBIO_GPU_HDP_FLUSH_REQ}, 1, {},
                     [this](RegisterIndex, std::uint32_t value) {
                         registers_.set(RegisterIndex{REG_NBIO_GPU_HDP_FLUSH_DONE}, value);
                     });
    registers_.claim(RegisterIndex{REG_GC_RLC_SAFE_MODE}, 1, {},
                     [this](RegisterIndex index, std::uint32_t value) {
                         registers_.set(index, HW_SET(RLC_SAFE_MODE, CMD, value, 0));
                     });
}

Result<> BusRegisters::load(Reader& in) {
    Result<> read = in.value(state_);
    if (read && (state_.used > State::kWords || state_.next >= State::kWords))
        read = fail(EPROTO, "state stream holds an SMN store of another size");
    if (!read) reset();
    return read;
}

std::uint32_t BusRegisters::smn_read() const {
    const std::uint32_t address = registers_.get(RegisterIndex{REG_NBIO_PCIE_INDEX2});
    const std::span used = std::span(state_.smn).first(state_.used);
    const auto word = std::ranges::find(used, address, &State::Word::address);
    return word == used.end() ? 0 : word->value;
}

/// The number of words is bounded, because a guest can name 2^32 addresses.
void BusRegisters::smn_write(std::uint32_t value) {
    const std::uint32_t address = registers_.get(RegisterIndex{REG_NBIO_PCIE_INDEX2});
    const std::span used = std::span(state_.smn).first(state_.used);
    const auto word = std::ranges::find(used, address, &State::Word::address);
    if (word != used.end()) {
        word->value = value;
        return;
    }
    state_.smn[state_.next] = {address, value};
    state_.next = (state_.next + 1) % State::kWords;
    state_.used = std::min<std::uint32_t>(state_.used + 1, State::kWords);
}

}  // namespace vgpu::softgpu::regs
