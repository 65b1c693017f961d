// SPDX-License-Identifier: MIT
#include "tests/unit/isa/program_generator.h"

#include <algorithm>
#include <array>

#include "pf-driver/softgpu/isa/translate/translator.h"
#include "tests/unit/isa/wave_bench.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Encoding;
using softgpu::isa::kLanes;
using softgpu::isa::Op;
using softgpu::isa::Type;

// Registers that no random instruction writes.
constexpr u32 kRandomOffsets = 38, kLaneOffsets = 39, kFirstReserved = 36;
constexpr u32 kCounter = 90, kBadPair = 82, kFreeScalars = 32, kExec = 126;

Words branch(Op op, u32 words) {
    return {enc::kSopp | put(enc::kSoppOp, softgpu::isa::info(op).code) | (words & 0xffff)};
}

/// Operations that compute: no control of the program, of MODE, or of register indexing.
bool is_computation(Op op) {
    static constexpr std::array kOthers{
        Op::s_setpc_b64,      Op::s_swappc_b64,      Op::s_rfe_b64,          Op::s_rfe_restore_b64,
        Op::s_cbranch_g_fork, Op::s_cbranch_i_fork,  Op::s_cbranch_join,     Op::s_call_b64,
        Op::s_getreg_b32,     Op::s_setreg_b32,      Op::s_setreg_imm32_b32, Op::s_setvskip,
        Op::s_set_gpr_idx_on, Op::s_set_gpr_idx_idx, Op::s_movrels_b32,      Op::s_movrels_b64,
        Op::s_movreld_b32,    Op::s_movreld_b64};
    const Encoding encoding = softgpu::isa::info(op).encoding;
    if (encoding == Encoding::Sopp || encoding == Encoding::Smem || encoding > Encoding::Vop3)
        return false;
    return std::ranges::find(kOthers, op) == kOthers.end();
}

const std::vector<Op>& computations(bool with_host_code) {
    static const auto lists = [] {
        std::array<std::vector<Op>, 2> out;
        for (std::size_t k = 0; k < softgpu::isa::kOpCount; ++k) {
            const Op op = static_cast<Op>(k);
            if (is_computation(op)) out[softgpu::isa::has_host_code(op) ? 1 : 0].push_back(op);
        }
        return out;
    }();
    return lists[with_host_code ? 1 : 0];
}

/// Opcode of the first VOP3 form of a short encoding.
std::optional<u32> long_form(Encoding encoding) {
    if (encoding == Encoding::Vop2) return enc::kVop3OfVop2;
    if (encoding == Encoding::Vop1) return enc::kVop3OfVop1;
    return encoding == Encoding::Vopc ? std::optional<u32>(0) : std::nullopt;
}

bool writes_reserved(const softgpu::isa::Instruction& i) {
    const bool is_scalar = softgpu::isa::info(i.op).encoding <= Encoding::Smem;
    const bool to_scalar = is_scalar || softgpu::isa::info(i.op).dst == Type::sgpr;
    if (to_scalar) return i.dst >= kFreeScalars && i.dst < enc::kVcc;
    return i.dst_regs != 0 && u32{i.dst} + i.dst_regs > kFirstReserved;
}

}  // namespace

u32 ProgramGenerator::value() {
    static constexpr std::array<u32, 24> kEdges{
        0,          1,          2,          31,         32,         0x7f,
        0x80,       0xffff,     0x8000,     0x7fffffff, 0x80000000, 0x80000001,
        0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001,
        0x7f800001, 0x00800000, 0x007fffff, 0x4f000000, 0xcf000000, 0x4f800000};
    return below(3) == 0 ? kEdges[below(kEdges.size())] : word();
}

u64 ProgramGenerator::lanes() {
    switch (below(6)) {
        case 0:
        case 1:
            return ~u64{0};
        case 2:
            return u64{1} << below(kLanes);
        case 3:
            return 0;
        default:
            return random_();
    }
}

u32 ProgramGenerator::mode() {
    constexpr u32 usual = 0xf0, dx10_and_ieee = 3u << 8;
    const u32 rare = below(8) == 0 ? word() & 0xff : usual;
    return rare | (word() & dx10_and_ieee);
}

u32 ProgramGenerator::scalar_source() {
    switch (below(8)) {
        case 0:
            return enc::kVcc + below(2);
        case 1:
            return kExec + below(2);
        case 2:
            return enc::kZero + below(enc::kLastNegative - enc::kZero + 1);
        case 3:
            return enc::kFirstFloat + below(9);
        case 4:
            return below(4) == 0 ? enc::kScc : enc::kLiteral;
        default:
            return below(kFreeScalars);
    }
}

u32 ProgramGenerator::vector_source() {
    if (below(4) == 0) return scalar_source();
    return enc::kFirstVgpr + below(below(8) == 0 ? kVgprs - 4 : 8);
}

u32 ProgramGenerator::scalar_result() {
    if (below(8) == 0) return enc::kVcc;
    return below(24) == 0 ? kExec : below(kFreeScalars);
}

/// One word; empty for an encoding that is not covered.
Words ProgramGenerator::short_form(Op op, u32 result) {
    const u32 code = softgpu::isa::info(op).code;
    switch (softgpu::isa::info(op).encoding) {
        case Encoding::Sop2:
            return Words{enc::kSop2 | put(enc::kSop2Op, code) | put(enc::kSdst, scalar_result()) |
                         scalar_source() | put(enc::kSsrc1, scalar_source())};
        case Encoding::Sop1:
            return Words{enc::kSop1 | put(enc::kSop1Op, code) | put(enc::kSdst, scalar_result()) |
                         scalar_source()};
        case Encoding::Sopc:
            return Words{enc::kSopc | put(enc::kSopcOp, code) | scalar_source() |
                         put(enc::kSsrc1, scalar_source())};
        case Encoding::Sopk:
            return Words{enc::kSopk | put(enc::kSopkOp, code) | put(enc::kSdst, scalar_result()) |
                         (value() & 0xffff)};
        case Encoding::Vop2:
            return Words{enc::kVop2 | put(enc::kVop2Op, code) | put(enc::kVdst, result) |
                         put(enc::kVsrc1, vector_source() & 31) | vector_source()};
        case Encoding::Vop1:
            return Words{enc::kVop1 | put(enc::kVop1Op, code) | put(enc::kVdst, result) |
                         vector_source()};
        case Encoding::Vopc:
            return Words{enc::kVopc | put(enc::kVopcOp, code) |
                         put(enc::kVsrc1, vector_source() & 31) | vector_source()};
        default:
            return {};
    }
}

std::optional<Words> ProgramGenerator::instruction(Op op) {
    const auto& row = softgpu::isa::info(op);
    const u32 code = row.code;
    const u32 few = below(4) == 0 ? 28 : 8;  // results: often the same registers
    const bool is_scalar_result = row.dst == Type::sgpr || row.dst == Type::mask;
    const u32 result = is_scalar_result ? scalar_result() : below(few);
    const bool has_mask = row.trait == softgpu::isa::Trait::CarryOut;
    if (const auto base = long_form(row.encoding); base && below(2) == 0)
        return checked(three_sources(code + *base, result, has_mask), op);
    const bool is_long = row.encoding == Encoding::Vop3;
    Words words = is_long ? three_sources(code, result, has_mask) : short_form(op, result);
    if (words.empty()) return std::nullopt;
    return checked(words, op);
}

/// With a literal, if the instruction has one; nothing if it is not the operation, or writes a
/// register that programs need.
std::optional<Words> ProgramGenerator::checked(Words words, Op op) {
    words.push_back(value());
    const auto decoded = softgpu::isa::decode(words);
    words.resize(decoded.size / 4);
    if (decoded.op != op || writes_reserved(decoded)) return std::nullopt;
    return words;
}

/// VOP3; now and then with modifiers.
Words ProgramGenerator::three_sources(u32 code, u32 result, bool has_mask) {
    u32 first = enc::kVop3 | put(enc::kVop3Op, code) | put(enc::kVop3Vdst, result);
    if (has_mask) first |= put(enc::kVop3Sdst, scalar_result());
    if (!has_mask && below(4) == 0) first |= put(enc::kVop3Abs, word() & 7);
    if (below(16) == 0) first |= put(enc::kVop3Clamp, 1);
    u32 second = put(enc::kVop3Src0, vector_source()) | put(enc::kVop3Src1, vector_source()) |
                 put(enc::kVop3Src2, vector_source());
    if (below(3) == 0) second |= put(enc::kVop3Neg, word() & 7);
    if (below(16) == 0) second |= put(enc::kVop3Omod, word() & 3);
    return {first, second};
}

Words ProgramGenerator::any() {
    for (;;) {
        const auto& ops = computations(below(5) != 0);
        if (const auto words = instruction(ops[below(static_cast<u32>(ops.size()))])) return *words;
    }
}

/// A load or store of data or of LDS. Offsets are those of the lanes in a row, or random ones.
Words ProgramGenerator::memory() {
    static constexpr std::array kGlobal{Op::global_load_dword,   Op::global_load_dwordx2,
                                        Op::global_load_dwordx4, Op::global_load_ubyte,
                                        Op::global_store_dword,  Op::global_store_dwordx2};
    static constexpr std::array kLocal{Op::ds_read_b32, Op::ds_write_b32, Op::ds_read_b64,
                                       Op::ds_add_u32};
    const u32 address = below(2) == 0 ? kLaneOffsets : kRandomOffsets;
    const u32 data = below(28), result = below(28);
    if (below(3) == 0)
        return {enc::kDs | put(enc::kDsOp, softgpu::isa::info(kLocal[below(kLocal.size())]).code) |
                    (word() & 0xfc),
                address | put(enc::kDsData0, data) | put(enc::kDsVdst, result)};
    constexpr u32 segment = 2;
    const u32 base = below(64) == 0 ? kBadPair : kDataPair;
    const u32 code = softgpu::isa::info(kGlobal[below(kGlobal.size())]).code;
    return {enc::kFlat | put(enc::kFlatOp, code) | put(enc::kFlatSegment, segment) |
                put(enc::kFlatOffset, word() & 0x7c),
            address | put(enc::kFlatData, data) | put(enc::kFlatSaddr, base) |
                put(enc::kFlatVdst, result)};
}

Words ProgramGenerator::exec_change() {
    constexpr u32 minus_one = 193;
    const u32 source = below(2) == 0 ? minus_one : below(kFreeScalars) & ~1u;
    const Op op = below(2) == 0 ? Op::s_mov_b64 : Op::s_and_saveexec_b64;
    const u32 to = op == Op::s_mov_b64 ? kExec : below(kFreeScalars) & ~1u;
    return {enc::kSop1 | put(enc::kSop1Op, softgpu::isa::info(op).code) | put(enc::kSdst, to) |
            source};
}

/// Instructions without a loop: some are jumped over.
Words ProgramGenerator::straight(std::size_t size) {
    static constexpr std::array kBranches{
        Op::s_cbranch_scc0,  Op::s_cbranch_scc1,   Op::s_cbranch_vccz, Op::s_cbranch_vccnz,
        Op::s_cbranch_execz, Op::s_cbranch_execnz, Op::s_branch};
    Words out;
    for (std::size_t k = 0; k < size; ++k) {
        const u32 kind = below(24);
        Words next = kind == 0 ? exec_change() : (kind < 4 ? memory() : any());
        if (below(16) == 0) {
            const auto jump =
                branch(kBranches[below(kBranches.size())], static_cast<u32>(next.size()));
            out.insert(out.end(), jump.begin(), jump.end());
        }
        out.insert(out.end(), next.begin(), next.end());
    }
    return out;
}

/// Straight code, a loop of a few rounds, straight code.
Words ProgramGenerator::program(std::size_t size) {
    const auto scalar_op = [](Op op) { return u32{softgpu::isa::info(op).code}; };
    Words out = straight(size / 4);
    out.push_back(enc::kSopk | put(enc::kSopkOp, scalar_op(Op::s_movk_i32)) |
                  put(enc::kSdst, kCounter) | (1 + below(12)));
    const Words body = straight(size / 2);
    const std::size_t first = out.size();
    out.insert(out.end(), body.begin(), body.end());
    out.push_back(enc::kSopk | put(enc::kSopkOp, scalar_op(Op::s_addk_i32)) |
                  put(enc::kSdst, kCounter) | 0xffff);
    out.push_back(enc::kSopk | put(enc::kSopkOp, scalar_op(Op::s_cmpk_lg_i32)) |
                  put(enc::kSdst, kCounter));
    const auto back = static_cast<u32>(first) - static_cast<u32>(out.size() + 1);
    out.push_back(branch(Op::s_cbranch_scc1, back).front());
    const Words rest = straight(size / 4);
    out.insert(out.end(), rest.begin(), rest.end());
    out.push_back(branch(Op::s_endpgm, 0).front());
    return out;
}

void ProgramGenerator::fill(softgpu::isa::Wave& wave) {
    for (u32 k = 0; k < kFreeScalars; ++k) wave.state.scalar[k] = value();
    wave.state.set_pair(softgpu::isa::ScalarReg::Exec, lanes());
    wave.state.set_pair(softgpu::isa::ScalarReg::Vcc, lanes());
    wave.state.scalar[kBadPair] = word() & ~3u;
    wave.state.scalar[kBadPair + 1] = 1;
    wave.state.mode = mode();
    for (u32 row = 0; row < kVgprs; ++row)
        for (u32& lane : wave.vgprs[row].lane) lane = value();
    for (u32 lane = 0; lane < kLanes; ++lane) {
        wave.vgprs[kLaneOffsets].lane[lane] = lane * 4;
        wave.vgprs[kRandomOffsets].lane[lane] = below(kDataBytes / 4) * 4;
    }
}

}  // namespace vgpu::test
