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
constexpr u32 kFirstReserved = 36;
constexpr std::array<u32, 4> kOffsets{38, 39, 46, 47}, kAddresses{36, 40, 42, 44};
constexpr u32 kCounter = 90, kBadPair = 82, kSmallOffset = 84, kFreeScalars = 32, kExec = 126;

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

/// Loads and stores, of which translated code knows most.
const std::vector<Op>& memory_operations() {
    static const auto list = [] {
        std::vector<Op> out{Op::ds_add_u32, Op::ds_write2_b32, Op::global_atomic_add,
                            Op::global_load_short_d16_hi, Op::global_store_dwordx4};
        for (std::size_t k = 0; k < softgpu::isa::kOpCount; ++k) {
            const Op op = static_cast<Op>(k);
            const Encoding encoding = softgpu::isa::info(op).encoding;
            const bool is_memory = encoding == Encoding::Smem || encoding >= Encoding::Ds;
            if (is_memory && softgpu::isa::has_host_code(op)) out.push_back(op);
        }
        return out;
    }();
    return list;
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
    if (row.encoding == Encoding::Smem) return checked(scalar_memory(op), op);
    if (row.encoding == Encoding::Ds) return checked(local_memory(op), op);
    if (row.encoding > Encoding::Ds) return checked(vector_memory(op), op);
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

Words ProgramGenerator::memory() {
    const auto& ops = memory_operations();
    for (;;)
        if (const auto words = instruction(ops[below(static_cast<u32>(ops.size()))])) return *words;
}

/// Addresses are pairs of vector registers, or a scalar pair and offsets of lanes.
Words ProgramGenerator::vector_memory(Op op) {
    constexpr u32 segment_of_global = 2;
    const bool is_global = softgpu::isa::info(op).encoding == Encoding::Global;
    const bool has_base = is_global && below(2) == 0;
    const u32 address =
        has_base ? kOffsets[below(kOffsets.size())] : kAddresses[below(kAddresses.size())];
    const u32 base = !has_base ? enc::kNoSaddr : below(64) == 0 ? kBadPair : kDataPair;
    const u32 offset = below(3) == 0 ? 0 : below(4) == 0 ? word() & 0xff : word() & 0x7c;
    const u32 sign = is_global && below(4) == 0 ? 0x1f00 : 0;
    return {enc::kFlat | put(enc::kFlatOp, softgpu::isa::info(op).code) |
                put(enc::kFlatSegment, is_global ? segment_of_global : 0) |
                put(enc::kFlatOffset, sign | offset),
            address | put(enc::kFlatData, below(28)) | put(enc::kFlatSaddr, base) |
                put(enc::kFlatVdst, below(28))};
}

Words ProgramGenerator::local_memory(Op op) {
    const u32 address = below(16) == 0 ? below(28) : kOffsets[below(kOffsets.size())];
    const u32 offset = below(3) == 0 ? 0 : below(4) == 0 ? word() & 0xffff : word() & 0x1ff;
    return {enc::kDs | put(enc::kDsOp, softgpu::isa::info(op).code) | offset,
            address | put(enc::kDsData0, below(28)) | put(enc::kDsData1, below(28)) |
                put(enc::kDsVdst, below(28))};
}

/// With a constant offset, one in a register, or both.
Words ProgramGenerator::scalar_memory(Op op) {
    constexpr u32 minus = 0x1fff00;
    const u32 base = below(64) == 0 ? kBadPair : kDataPair;
    const u32 kind = 1 + below(3);
    const u32 offset = (below(4) == 0 ? minus : 0) | (word() & 0xff);
    return {enc::kSmem | put(enc::kSmemOp, softgpu::isa::info(op).code) |
                put(enc::kSmemImm, kind & 1) | put(enc::kSmemSoffsetEnable, kind >> 1) |
                put(enc::kSmemData, scalar_result()) | (base / 2),
            ((kind & 1) != 0 ? offset : 0) | put(enc::kSmemSoffset, kSmallOffset)};
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

/// Where a lane reaches, from the data's address on.
std::int32_t ProgramGenerator::place(u32 pattern, u32 lane, u32 first) {
    static constexpr std::array<u32, 8> kSteps{4, 4, 4, 1, 2, 8, 12, 16};
    const auto at = [&](u32 distance) { return static_cast<std::int32_t>(first + distance); };
    switch (pattern) {
        case 0:  // rows of 16 lanes
            return at(lane % 16 * 4 + lane / 16 * 256);
        case 1:
            return at(lane / 16 * 64);
        case 6:  // rows that are farther apart, over a page border
            return at(lane % 16 * 4 + lane / 16 * 1032);
        case 2:
            return at(0);
        case 3:
            return at((kLanes - lane) * 4);
        case 4:
            return static_cast<std::int32_t>(below(kDataBytes / 4) * 4);
        case 5:
            return static_cast<std::int32_t>(below(2 * kDataBytes - 64)) -
                   static_cast<std::int32_t>(kDataBytes);
        default:
            return at(lane * kSteps[pattern % kSteps.size()]);
    }
}

/// Addresses in pairs of registers, offsets in single ones. Now and then one lane is elsewhere, or
/// all lanes are in a window of flat addresses.
void ProgramGenerator::fill_addresses(softgpu::isa::Wave& wave, u64 data) {
    constexpr u32 patterns = 15;
    const softgpu::isa::Apertures apertures;
    const std::array<u64, 2> windows{apertures.shared_base + 4096, apertures.private_base + 4096};
    for (const u32 row : kOffsets) {
        const u32 pattern = below(patterns), first = below(4) == 0 ? below(600) : below(150) * 4;
        for (u32 lane = 0; lane < kLanes; ++lane)
            wave.vgprs[row].lane[lane] = static_cast<u32>(std::max(place(pattern, lane, first), 0));
        if (below(24) == 0) wave.vgprs[row].lane[below(kLanes)] = value();
    }
    for (const u32 row : kAddresses) {
        const u32 pattern = below(patterns), first = below(4) == 0 ? below(600) : below(150) * 4;
        const u64 base = below(24) == 0 ? windows[below(2)] : data;
        for (u32 lane = 0; lane < kLanes; ++lane) {
            const u64 at = base + static_cast<u64>(std::int64_t{place(pattern, lane, first)});
            wave.vgprs[row].lane[lane] = softgpu::low32(at);
            wave.vgprs[row + 1].lane[lane] = softgpu::high32(at);
        }
        if (below(48) == 0) wave.vgprs[row + below(2)].lane[below(kLanes)] = value();
    }
}

void ProgramGenerator::fill(softgpu::isa::Wave& wave, u64 data) {
    for (u32 k = 0; k < kFreeScalars; ++k) wave.state.scalar[k] = value();
    wave.state.set_pair(softgpu::isa::ScalarReg::Exec, lanes());
    wave.state.set_pair(softgpu::isa::ScalarReg::Vcc, lanes());
    wave.state.scalar[kBadPair] = word() & ~3u;
    wave.state.scalar[kBadPair + 1] = 1;
    wave.state.mode = mode();
    for (u32 row = 0; row < kVgprs; ++row)
        for (u32& lane : wave.vgprs[row].lane) lane = value();
    fill_addresses(wave, data);
    wave.state.set_pair(softgpu::isa::ScalarReg::FlatScratch, data);
    wave.state.scalar[kDataPair] = softgpu::low32(data);
    wave.state.scalar[kDataPair + 1] = softgpu::high32(data);
    wave.state.scalar[kSmallOffset] = below(256);
}

}  // namespace vgpu::test
