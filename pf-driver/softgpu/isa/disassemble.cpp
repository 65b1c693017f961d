// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/disassemble.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "pf-driver/softgpu/isa/encoding.h"

namespace vgpu::softgpu::isa {

namespace {

/// Scalar places with names of their own.
struct NamedScalar {
    std::uint32_t first;
    std::string_view pair;
    std::string_view low;
    std::string_view high;
};
constexpr std::array<NamedScalar, 4> kNamed{{
    {102, "flat_scratch", "flat_scratch_lo", "flat_scratch_hi"},
    {104, "xnack_mask", "xnack_mask_lo", "xnack_mask_hi"},
    {106, "vcc", "vcc_lo", "vcc_hi"},
    {126, "exec", "exec_lo", "exec_hi"},
}};
constexpr std::uint32_t kFirstTrapRegister = 108, kM0 = 124;

std::string registers(std::string_view file, std::uint32_t first, std::uint32_t count) {
    if (count <= 1) return fmt::format("{}{}", file, first);
    return fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

std::string scalar_name(std::uint32_t first, std::uint32_t count) {
    for (const NamedScalar& named : kNamed) {
        if (first == named.first && count == 2) return std::string(named.pair);
        if (first == named.first) return std::string(named.low);
        if (first == named.first + 1) return std::string(named.high);
    }
    if (first == kM0) return "m0";
    if (first >= kFirstTrapRegister && first < kM0)
        return registers("ttmp", first - kFirstTrapRegister, count);
    return registers("s", first, count);
}

std::string special_name(std::uint32_t code) {
    switch (code) {
        case enc::kSharedBase:
            return "src_shared_base";
        case enc::kSharedLimit:
            return "src_shared_limit";
        case enc::kPrivateBase:
            return "src_private_base";
        case enc::kPrivateLimit:
            return "src_private_limit";
        case enc::kVccZero:
            return "src_vccz";
        case enc::kExecZero:
            return "src_execz";
        default:
            return "src_scc";
    }
}

std::string plain(const Operand& operand) {
    switch (operand.kind) {
        case OperandKind::Vgpr:
            return registers("v", operand.value, operand.regs);
        case OperandKind::Scalar:
            return scalar_name(operand.value, operand.regs);
        case OperandKind::Special:
            return special_name(operand.value);
        case OperandKind::InverseTwoPi:
            return "0.15915494";
        case OperandKind::ConstantSigned:
            return fmt::format("{}", static_cast<std::int32_t>(operand.value));
        default:
            return fmt::format("{:#x}", operand.value);
    }
}

std::string with_signs(const Operand& operand) {
    const std::string_view bar = operand.absolute ? "|" : "";
    return fmt::format("{}{}{}{}", operand.negate ? "-" : "", bar, plain(operand), bar);
}

bool has_scalar_result(const OpInfo& row) {
    const bool is_scalar = row.encoding <= Encoding::Sopk && row.dst != Type::none;
    const bool is_load = row.encoding == Encoding::Smem && row.result_regs != 0;
    return is_scalar || is_load || row.dst == Type::sgpr;
}

std::uint32_t scalar_result_width(const OpInfo& row) {
    if (row.encoding == Encoding::Smem) return row.result_regs;
    const bool is_wide = row.dst == Type::u64 || row.dst == Type::i64;
    return is_wide ? 2 : 1;
}

}  // namespace

std::string disassemble(const Instruction& i) {
    const OpInfo& row = info(i.op);
    if (i.op == Op::Illegal)
        return fmt::format("illegal {:#010x} {:#010x}", i.words[0], i.words[1]);
    std::string out = row.name;
    const char* separator = " ";
    const auto add = [&](const std::string& text) {
        out.append(separator).append(text);
        separator = ", ";
    };
    if (i.dst_regs != 0) add(registers("v", i.dst, i.dst_regs));
    if (has_scalar_result(row)) add(scalar_name(i.dst, scalar_result_width(row)));
    if (row.trait == Trait::CarryOut || row.dst == Type::mask) add(scalar_name(i.sdst, 2));
    for (const Operand& source : i.src)
        if (source.kind != OperandKind::None &&
            (source.kind != OperandKind::Vgpr || source.regs != 0))
            add(with_signs(source));
    if (i.imm != 0)
        out += fmt::format(" {}{}", row.encoding >= Encoding::Ds ? "offset:" : "", i.imm);
    if (i.clamp) out += " clamp";
    if (i.modifier == Modifier::Sdwa) out += " sdwa";
    if (i.modifier == Modifier::Dpp) out += fmt::format(" dpp:{:#x}", i.dpp_control);
    return out;
}

}  // namespace vgpu::softgpu::isa
