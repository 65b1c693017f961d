// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/rlcg.h"

#include <array>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::regs {

namespace {

enum class Operation : std::uint8_t { Invalid, Read, Write };

/// Indexed by SCRATCH_REG1.RLCG_COMMAND (hw/fields.def); an entry that is not set is Invalid.
constexpr std::array<Operation, 16> kOperations = [] {
    std::array<Operation, 16> table{};
    table[0] = Operation::Write;  // GC
    table[1] = Operation::Read;   // GC
    table[2] = Operation::Write;  // MMHUB
    table[8] = Operation::Write;  // legacy
    return table;
}();

/// False for the PF-only range, and for the registers that hold or start a command of the RLCG.
bool is_reachable(std::uint32_t offset) {
    return offset < REG_VGPU_ID && offset != REG_GC_RLC_SPARE_INT && offset != REG_GC_SCRATCH_REG1;
}

}  // namespace

Rlcg::Rlcg(RegisterFile& registers, std::function<Gate()> gate)
    : registers_(registers), gate_(std::move(gate)) {
    registers_.claim(RegisterIndex{REG_GC_RLC_SPARE_INT}, 1, {},
                     [this](RegisterIndex, std::uint32_t value) {
                         if ((value & 1u) != 0) perform();
                     });
}

/// The access is complete when the write of RLC_SPARE_INT returns, so the driver's first poll sees
/// the answer.
void Rlcg::perform() {
    const RegisterIndex command{REG_GC_SCRATCH_REG1};
    std::uint32_t request = registers_.get(command);
    const Answer answer = access(request);
    if (answer != Answer::Done) ++refused_;
    request = HW_SET(SCRATCH_REG1, RLCG_OFFSET, request, 0);
    request = HW_SET(SCRATCH_REG1, RLCG_ERROR, request, answer);
    registers_.set(command, request);
    registers_.set(RegisterIndex{REG_GC_RLC_SPARE_INT}, 0);
}

Rlcg::Answer Rlcg::access(std::uint32_t request) {
    if (gate_() == Gate::Shut) return Answer::GateShut;
    const std::uint32_t offset = HW_GET(SCRATCH_REG1, RLCG_OFFSET, request);
    const Operation operation = kOperations[HW_GET(SCRATCH_REG1, RLCG_COMMAND, request)];
    if (operation == Operation::Invalid) return Answer::WrongOperation;
    if (!is_reachable(offset)) return Answer::NotInRange;
    const RegisterIndex value{REG_GC_SCRATCH_REG0};
    if (operation == Operation::Read)
        registers_.set(value, registers_.read(RegisterIndex{offset}));
    else
        registers_.write(RegisterIndex{offset}, registers_.get(value));
    return Answer::Done;
}

}  // namespace vgpu::softgpu::regs
