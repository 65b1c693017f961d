// SPDX-License-Identifier: MIT
#include "tests/support/isa/disassemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/encoding.h"

namespace vgpu::softgpu::isa {

namespace {

using std::uint32_t;

// ---- registers

/// Pairs of scalar registers with names.
struct NamedScalar {
    uint32_t first;
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
constexpr uint32_t kFirstTrapRegister = 108, kM0 = 124, kNull = 125;

/// As LLVM prints them: one register by its number, several as a range in brackets.
std::string registers(std::string_view file, uint32_t first, uint32_t count) {
    if (count <= 1) return fmt::format("{}{}", file, first);
    return fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

std::string scalar_name(uint32_t first, uint32_t count) {
    for (const NamedScalar& named : kNamed) {
        if (first == named.first && count == 2) return std::string(named.pair);
        if (first == named.first) return std::string(named.low);
        if (first == named.first + 1) return std::string(named.high);
    }
    if (first == kM0) return "m0";
    if (first == kNull) return "null";
    if (first >= kFirstTrapRegister && first < kM0)
        return registers("ttmp", first - kFirstTrapRegister, count);
    return registers("s", first, count);
}

std::string special_name(uint32_t code) {
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
        case enc::kLdsDirect:
            return "src_lds_direct";
        default:
            return "src_scc";
    }
}

// ---- numbers

constexpr std::array<std::string_view, 8> kFloatNames{"0.5", "-0.5", "1.0", "-1.0",
                                                      "2.0", "-2.0", "4.0", "-4.0"};
constexpr std::size_t kInverseTwoPi = 8;

/// Integers that have an inline constant are printed as decimals, all others as bits.
bool is_small(std::int32_t value) {
    return value >= -16 && value <= 64;
}

/// The name of an inline constant, by its number in the table, if `matches` accepts one.
template <class Matches> std::string float_name(Matches matches, std::string_view inverse) {
    for (std::size_t i = 0; i < kFloatNames.size(); ++i)
        if (matches(enc::kFloatConstants[i])) return std::string(kFloatNames[i]);
    return matches(enc::kFloatConstants[kInverseTwoPi]) ? std::string(inverse) : std::string();
}

/// A constant of a 16-bit operation is the low half of `value`.
std::string number16(uint32_t value, bool is_float) {
    const auto low = static_cast<std::int16_t>(value);
    if (is_small(low)) return fmt::format("{}", low);
    const auto matches = [&](const enc::FloatConstant& c) { return c.half == (value & 0xffff); };
    const std::string name = is_float ? float_name(matches, "0.15915494") : std::string();
    return name.empty() ? fmt::format("{:#x}", value & 0xffff) : name;
}

std::string number32(uint32_t value) {
    const auto with_sign = static_cast<std::int32_t>(value);
    if (is_small(with_sign)) return fmt::format("{}", with_sign);
    const auto matches = [&](const enc::FloatConstant& c) { return c.single == value; };
    const std::string name = float_name(matches, "0.15915494");
    return name.empty() ? fmt::format("{:#x}", value) : name;
}

/// 64-bit operands; a literal is printed as its 32 bits.
std::string number64(const Operand& operand) {
    const auto low = static_cast<std::int32_t>(operand.value);
    if (operand.kind == OperandKind::InverseTwoPi) return "0.15915494309189532";
    // LLVM extends a literal by zeros before it looks for an inline constant
    const bool is_integer =
        operand.kind == OperandKind::ConstantSigned || (operand.is_literal && low >= 0);
    if (is_integer && is_small(low)) return fmt::format("{}", low);
    const auto matches = [&](const enc::FloatConstant& c) {
        return c.double_high == operand.value;
    };
    const std::string name = operand.is_literal ? std::string() : float_name(matches, "");
    return name.empty() ? fmt::format("{:#x}", operand.value) : name;
}

bool is_wide(Type type) {
    return type == Type::u64 || type == Type::i64 || type == Type::f64;
}
bool is_half(Type type) {
    return type == Type::u16 || type == Type::i16 || type == Type::f16;
}
bool is_float(Type type) {
    return type == Type::f16 || type == Type::f32 || type == Type::f64;
}

std::string plain(const Operand& operand, Type type) {
    switch (operand.kind) {
        case OperandKind::Vgpr:
            return registers("v", operand.value, operand.regs);
        case OperandKind::Scalar:
            return scalar_name(operand.value, operand.regs);
        case OperandKind::Special:
            return special_name(operand.value);
        default:
            break;
    }
    if (is_wide(type)) return number64(operand);
    return is_half(type) ? number16(operand.value, type == Type::f16) : number32(operand.value);
}

bool is_number(const Operand& operand) {
    return operand.kind != OperandKind::Vgpr && operand.kind != OperandKind::Scalar &&
           operand.kind != OperandKind::Special;
}

/// A float operand with its sign modifiers; a number is negated in parentheses.
std::string with_signs(const Operand& operand, Type type, bool absolute) {
    const std::string text = plain(operand, type);
    if (absolute) return fmt::format("{}|{}|", operand.negate ? "-" : "", text);
    if (!operand.negate) return text;
    return is_number(operand) ? fmt::format("neg({})", text) : "-" + text;
}

// ---- text of one instruction

/// Prints one instruction. `row_` gives the encoding; the words have bits that decoding did not
/// keep.
class Printer {
public:
    explicit Printer(const Instruction& instruction)
        : i_(instruction), row_(info(instruction.op)), out_(row_.name) {}
    std::string run();

private:
    using Part = void (Printer::*)();
    void add(const std::string& text) {
        out_.append(separator_).append(text);
        separator_ = ", ";
    }
    void flag(bool is_set, std::string_view text) {
        if (is_set) out_.append(" ").append(text);
    }
    [[nodiscard]] uint32_t field(std::size_t word, enc::Field f) const {
        return static_cast<uint32_t>(bits(i_.words[word], f.first, f.count));
    }
    [[nodiscard]] uint32_t constant16() const { return static_cast<uint32_t>(i_.imm) & 0xffff; }
    [[nodiscard]] bool is_long() const { return (i_.words[0] & enc::kVop3Mask) == enc::kVop3; }
    [[nodiscard]] bool is_sdwa() const { return i_.modifier == Modifier::Sdwa && !is_long(); }

    void scalar();
    void constant();
    void program();
    void scalar_memory();
    void vector();
    void suffix();
    void vector_sources();
    void parts();
    void lanes();
    void selected();
    void packed();
    void list(std::string_view name, uint32_t value, uint32_t count);
    void local();
    void address();
    void buffer();
    void format();

    const Instruction& i_;
    const OpInfo& row_;
    std::string out_;
    std::string_view separator_ = " ";
};

void Printer::scalar() {
    if (row_.dst != Type::none) add(scalar_name(i_.dst, is_wide(row_.dst) ? 2 : 1));
    if (i_.op == Op::s_set_gpr_idx_on) {
        add(plain(i_.src[0], row_.src[0]));
        return add(fmt::format("{:#x}", i_.imm));
    }
    for (std::size_t k = 0; k < row_.src.size(); ++k)
        if (row_.src[k] != Type::none) add(plain(i_.src[k], row_.src[k]));
}

/// SOPK: branch offsets are decimal, other constants are bits.
void Printer::constant() {
    if (i_.op == Op::s_setreg_b32 || i_.op == Op::s_setreg_imm32_b32) {
        add(fmt::format("{:#x}", constant16()));
        if (i_.op == Op::s_setreg_b32) return add(scalar_name(i_.dst, 1));
        return add(number32(i_.src[0].value));
    }
    const bool jumps = i_.op == Op::s_call_b64 || i_.op == Op::s_cbranch_i_fork;
    add(scalar_name(i_.dst, jumps ? 2 : 1));
    add(jumps ? fmt::format("{}", constant16()) : fmt::format("{:#x}", constant16()));
}

/// Prints the constant of program-control instructions; some do not use the field.
void Printer::program() {
    switch (i_.op) {
        case Op::s_barrier:
        case Op::s_icache_inv:
        case Op::s_ttracedata:
        case Op::s_wakeup:
        case Op::s_set_gpr_idx_off:
        case Op::s_endpgm_saved:
        case Op::s_endpgm_ordered_ps_done:
            return;
        case Op::s_endpgm:
            if (constant16() != 0) add(fmt::format("{}", constant16()));
            return;
        default:
            break;
    }
    const bool jumps = out_.starts_with("s_branch") || out_.starts_with("s_cbranch");
    add(jumps ? fmt::format("{}", constant16()) : number32(constant16()));
}

/// Offsets are signed on gfx9: LLVM prints the sign in front of the hexadecimal number.
void Printer::scalar_memory() {
    const bool probes = i_.op == Op::s_atc_probe || i_.op == Op::s_atc_probe_buffer;
    const uint32_t data =
        std::max<uint32_t>(row_.result_regs, uint32_t{row_.data_regs} * row_.data_operands);
    if (data != 0) add(scalar_name(i_.dst, data));
    if (probes) add(number32(field(0, enc::kSmemData)));
    if (row_.trait == Trait::Constant) return;
    add(scalar_name(i_.src[0].value, i_.src[0].regs));
    if (i_.src[1].kind != OperandKind::None)
        add(plain(i_.src[1], Type::u32));
    else
        add(i_.imm < 0 ? fmt::format("-{:#x}", -i_.imm) : fmt::format("{:#x}", i_.imm));
    flag(i_.returns && data != 0, "glc");
}

void Printer::list(std::string_view name, uint32_t value, uint32_t count) {
    out_ += fmt::format(" {}:[", name);
    for (uint32_t k = 0; k < count; ++k)
        out_ += fmt::format("{}{}", k == 0 ? "" : ",", (value >> k) & 1);
    out_ += "]";
}

/// Appends the suffix of the encoding to a mnemonic that has several encodings.
void Printer::suffix() {
    const bool has_forms = row_.encoding == Encoding::Vop2 || row_.encoding == Encoding::Vop1 ||
                           row_.encoding == Encoding::Vopc;
    const bool has_one = row_.trait == Trait::Constant || i_.op == Op::v_swap_b32 ||
                         i_.op == Op::v_readfirstlane_b32;
    if (!has_forms || has_one) return;
    if (is_long())
        out_ += i_.op == Op::v_nop || i_.op == Op::v_clrexcp ? "" : "_e64";
    else if (is_sdwa())
        out_ += "_sdwa";
    else if (i_.modifier == Modifier::Dpp)
        out_ += "_dpp";
    else
        out_ += row_.dst == Type::none ? "" : "_e32";
}

/// Prints sources in the order of LLVM's text; the constant of v_madmk is second.
void Printer::vector_sources() {
    const bool multiplies_constant = i_.op == Op::v_madmk_f32 || i_.op == Op::v_madmk_f16;
    constexpr std::array<std::size_t, 3> kPlain{0, 1, 2};
    constexpr std::array<std::size_t, 3> kConstantSecond{0, 2, 1};
    for (const std::size_t k : multiplies_constant ? kConstantSecond : kPlain) {
        const Operand& source = i_.src[k];
        const bool is_implied = k == 2 && row_.trait == Trait::OldResult;
        if (row_.src[k] == Type::none || is_implied) continue;
        if (k == 2 && row_.trait == Trait::Constant) {
            add(fmt::format("{:#x}", source.value));
            continue;
        }
        const bool extends = is_sdwa() && k < 2 && i_.sign_extend[k];
        // LLVM prints the literal of v_madak_f16 as a half, but not this literal
        if (multiplies_constant && source.is_literal) {
            add(number32(source.value));
            continue;
        }
        const bool has_signs = is_float(row_.src[k]);
        // LLVM prints this exponent as a half
        const bool is_exponent = is_sdwa() && k == 1 && i_.op == Op::v_ldexp_f16;
        const std::string text = has_signs ? with_signs(source, row_.src[k], source.absolute)
                                           : plain(source, is_exponent ? Type::f16 : row_.src[k]);
        // v_cndmask_b32 is the only bit operation whose operands have float signs in other
        // encodings
        const bool is_of_bits = !has_signs || i_.op == Op::v_cndmask_b32;
        add(extends && is_of_bits ? fmt::format("sext({})", text) : text);
    }
}

void Printer::parts() {
    static constexpr std::array<std::string_view, 7> kSelect{"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                                             "WORD_0", "WORD_1", "DWORD"};
    static constexpr std::array<std::string_view, 3> kUnused{"UNUSED_PAD", "UNUSED_SEXT",
                                                             "UNUSED_PRESERVE"};
    const auto name = [](Select part) { return kSelect[static_cast<std::size_t>(part)]; };
    if (row_.encoding != Encoding::Vopc && row_.dst != Type::none)
        out_ += fmt::format(" dst_sel:{} dst_unused:{}", name(i_.dst_select),
                            kUnused[static_cast<std::size_t>(i_.dst_unused)]);
    if (row_.src[0] != Type::none) out_ += fmt::format(" src0_sel:{}", name(i_.select[0]));
    if (row_.src[1] != Type::none) out_ += fmt::format(" src1_sel:{}", name(i_.select[1]));
}

void Printer::lanes() {
    struct Name {
        uint32_t first;
        std::string_view text;
    };
    static constexpr std::array<Name, 11> kNames{{{enc::kDppRowBcast31, "row_bcast:31"},
                                                  {enc::kDppRowBcast15, "row_bcast:15"},
                                                  {enc::kDppRowHalfMirror, "row_half_mirror"},
                                                  {enc::kDppRowMirror, "row_mirror"},
                                                  {enc::kDppWaveRor, "wave_ror:1"},
                                                  {enc::kDppWaveShr, "wave_shr:1"},
                                                  {enc::kDppWaveRol, "wave_rol:1"},
                                                  {enc::kDppWaveShl, "wave_shl:1"},
                                                  {enc::kDppRowRor, "row_ror:"},
                                                  {enc::kDppRowShr, "row_shr:"},
                                                  {enc::kDppRowShl, "row_shl:"}}};
    const uint32_t control = i_.dpp_control;
    if (control <= enc::kDppQuadPermLast) {
        out_ += fmt::format(" quad_perm:[{},{},{},{}]", control & 3, (control >> 2) & 3,
                            (control >> 4) & 3, (control >> 6) & 3);
    } else {
        const auto* found =
            std::ranges::find_if(kNames, [&](const Name& name) { return control >= name.first; });
        out_ += fmt::format(" {}", found->text);
        if (found->text.ends_with(':')) out_ += fmt::format("{}", control & 0xf);
    }
    out_ += fmt::format(" row_mask:{:#x} bank_mask:{:#x}", i_.row_mask, i_.bank_mask);
    flag(i_.bound_zero, "bound_ctrl:1");
}

uint32_t sources_of(const OpInfo& row) {
    return static_cast<uint32_t>(
        std::ranges::count_if(row.src, [](Type type) { return type != Type::none; }));
}

/// Operations that choose halves in the 64-bit encoding; LLVM prints the choice for no others.
bool selects_halves(Op op) {
    switch (op) {
        case Op::v_mad_u32_u16:
        case Op::v_mad_i32_i16:
        case Op::v_add_i16:
        case Op::v_sub_i16:
        case Op::v_cvt_pknorm_i16_f16:
        case Op::v_cvt_pknorm_u16_f16:
        case Op::v_pack_b32_f16:
            return true;
        default:
            return info(op).trait == Trait::KeepsHigh;
    }
}

/// OP_SEL of the 64-bit encoding: one bit per source and one for the result.
void Printer::selected() {
    const uint32_t bits = field(0, enc::kVop3OpSel);
    const uint32_t sources = sources_of(row_);
    const uint32_t used = (bits & ((1u << sources) - 1)) | ((bits >> 3) << sources);
    if (bits != 0 && selects_halves(i_.op)) list("op_sel", used, sources + 1);
}

void Printer::packed() {
    const uint32_t sources = sources_of(row_);
    const uint32_t all = (1u << sources) - 1;
    const bool is_mixed = row_.src[0] == Type::f32;
    uint32_t negate = 0;
    for (uint32_t k = 0; k < sources; ++k) negate |= (i_.src[k].negate ? 1u : 0u) << k;
    if ((i_.op_sel & all) != 0) list("op_sel", i_.op_sel, sources);
    const uint32_t usual = is_mixed ? 0 : all;
    if ((i_.op_sel_hi & all) != usual) list("op_sel_hi", i_.op_sel_hi, sources);
    if (!is_mixed && (negate & all) != 0) list("neg_lo", negate, sources);
    if (!is_mixed && (i_.negate_hi & all) != 0) list("neg_hi", i_.negate_hi, sources);
}

void Printer::vector() {
    suffix();
    const bool has_vector_result = i_.dst_regs != 0;
    if (has_vector_result) add(registers("v", i_.dst, i_.dst_regs));
    if (row_.dst == Type::sgpr) add(scalar_name(i_.dst, 1));
    if (row_.trait == Trait::CarryOut || row_.dst == Type::mask) add(scalar_name(i_.sdst, 2));
    if (row_.encoding == Encoding::Vop3p) {
        const bool is_mixed = row_.src[0] == Type::f32;
        for (std::size_t k = 0; k < row_.src.size(); ++k) {
            if (row_.src[k] == Type::none) continue;
            const bool absolute = ((i_.negate_hi >> k) & 1) != 0;
            add(is_mixed ? with_signs(i_.src[k], row_.src[k], absolute)
                         : plain(i_.src[k], row_.src[k]));
        }
        packed();
        return flag(i_.clamp, "clamp");
    }
    vector_sources();
    if (is_long()) selected();
    static constexpr std::array<std::string_view, 4> kOmod{"", "mul:2", "mul:4", "div:2"};
    flag(i_.clamp, "clamp");
    flag(i_.omod != 0, kOmod[i_.omod]);
    if (is_sdwa()) parts();
    if (i_.modifier == Modifier::Dpp) lanes();
}

void Printer::local() {
    if (i_.dst_regs != 0) add(registers("v", i_.dst, i_.dst_regs));
    const bool has_address = i_.op != Op::ds_nop && i_.op != Op::ds_append &&
                             i_.op != Op::ds_consume && i_.op != Op::ds_read_addtid_b32 &&
                             i_.op != Op::ds_write_addtid_b32;
    if (has_address && i_.src[0].regs != 0) add(registers("v", i_.src[0].value, 1));
    for (std::size_t k = 1; k < 3; ++k)
        if (i_.src[k].regs != 0) add(registers("v", i_.src[k].value, i_.src[k].regs));
    const bool has_two = out_.find("read2") != std::string::npos ||
                         out_.find("write2") != std::string::npos ||
                         out_.find("wrxchg2") != std::string::npos;
    if (!has_two) {
        if (i_.imm != 0) out_ += fmt::format(" offset:{}", i_.imm);
        return flag(row_.trait == Trait::GlobalSync, "gds");
    }
    if ((i_.imm & 0xff) != 0) out_ += fmt::format(" offset0:{}", i_.imm & 0xff);
    if ((i_.imm >> 8) != 0) out_ += fmt::format(" offset1:{}", i_.imm >> 8);
}

/// FLAT, GLOBAL, SCRATCH. A scratch instruction has one of two addresses; the other prints as off.
void Printer::address() {
    const bool is_flat = row_.encoding == Encoding::Flat;
    const bool has_scalar = i_.src[2].kind == OperandKind::Scalar;
    const bool has_vector = i_.src[0].kind == OperandKind::Vgpr && i_.src[0].regs != 0;
    if (i_.dst_regs != 0) add(registers("v", i_.dst, i_.dst_regs));
    add(has_vector ? registers("v", i_.src[0].value, i_.src[0].regs) : "off");
    if (i_.src[1].regs != 0) add(registers("v", i_.src[1].value, i_.src[1].regs));
    if (!is_flat) add(has_scalar ? scalar_name(i_.src[2].value, i_.src[2].regs) : "off");
    if (i_.imm != 0) out_ += fmt::format(" offset:{}", i_.imm);
    flag(field(0, enc::kFlatGlc) != 0, "glc");
    flag(field(0, enc::kFlatSlc) != 0, "slc");
}

void Printer::format() {
    static constexpr std::array<std::string_view, 16> kData{
        "INVALID",     "8",        "16",          "8_8",        "32",      "16_16",
        "10_11_11",    "11_11_10", "10_10_10_2",  "2_10_10_10", "8_8_8_8", "32_32",
        "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
    static constexpr std::array<std::string_view, 8> kNumber{
        "UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"};
    constexpr uint32_t usual_data = 1, usual_number = 0;
    const auto data =
        static_cast<uint32_t>(bits(i_.format, enc::kDataFormat.first, enc::kDataFormat.count));
    const auto number =
        static_cast<uint32_t>(bits(i_.format, enc::kNumberFormat.first, enc::kNumberFormat.count));
    if (data == usual_data && number == usual_number) return;
    out_ += " format:[";
    if (data != usual_data) out_ += fmt::format("BUF_DATA_FORMAT_{}", kData[data]);
    if (data != usual_data && number != usual_number) out_ += ",";
    if (number != usual_number) out_ += fmt::format("BUF_NUM_FORMAT_{}", kNumber[number]);
    out_ += "]";
}

void Printer::buffer() {
    if (row_.trait == Trait::Constant) return;
    const bool is_typed = row_.encoding == Encoding::Mtbuf;
    const uint32_t data = std::max<uint32_t>(row_.result_regs, i_.src[1].regs);
    if (data != 0) add(registers("v", field(1, enc::kMubufVdata), data));
    const bool has_vector = i_.src[0].regs != 0;
    if (i_.op != Op::buffer_store_lds_dword)
        add(has_vector ? registers("v", i_.src[0].value, i_.src[0].regs) : "off");
    add(scalar_name(i_.src[2].value, 4));
    add(plain(i_.src[3], Type::u32));
    if (is_typed) format();
    flag(i_.index_enable, "idxen");
    flag(i_.offset_enable, "offen");
    if (i_.imm != 0) out_ += fmt::format(" offset:{}", i_.imm);
    const bool stores_lds = i_.op == Op::buffer_store_lds_dword;
    flag(stores_lds, "lds");
    flag(i_.returns, "glc");
    flag(is_typed ? field(1, enc::kMtbufSlc) != 0 : field(0, enc::kMubufSlc) != 0, "slc");
    flag(i_.to_lds && !stores_lds, "lds");
}

std::string Printer::run() {
    static constexpr std::array<Part, 17> kParts{
        &Printer::scalar,  &Printer::scalar,        &Printer::scalar,  &Printer::constant,
        &Printer::program, &Printer::scalar_memory, &Printer::vector,  &Printer::vector,
        &Printer::vector,  &Printer::vector,        &Printer::vector,  &Printer::local,
        &Printer::address, &Printer::address,       &Printer::address, &Printer::buffer,
        &Printer::buffer};
    static_assert(kParts.size() == static_cast<std::size_t>(Encoding::Mtbuf) + 1);
    (this->*kParts[static_cast<std::size_t>(row_.encoding)])();
    return out_;
}

}  // namespace

std::string disassemble(const Instruction& instruction) {
    if (instruction.op == Op::Illegal)
        return fmt::format("illegal {:#010x} {:#010x}", instruction.words[0], instruction.words[1]);
    return Printer(instruction).run();
}

}  // namespace vgpu::softgpu::isa
