// SPDX-License-Identifier: MIT
//
// Tables made from the rows of ops/*.def: the properties of each operation, and the operation of
// each opcode number.
#include <string_view>

#include "pf-driver/softgpu/isa/encoding.h"
#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa {

namespace {

constexpr std::size_t kCodes = 1024;  // the widest opcode field, that of VOP3, has 10 bits
constexpr std::size_t kEncodings = static_cast<std::size_t>(Encoding::Mtbuf) + 1;

constexpr std::uint8_t registers_of(unsigned element_bytes, unsigned count) {
    return static_cast<std::uint8_t>(element_bytes < 4 ? 1 : element_bytes / 4 * count);
}

/// What an LDS atomic returns: nothing, or the old value in LDS.
enum class Returns : bool { Nothing, Old };
constexpr Returns Nothing = Returns::Nothing;
constexpr Returns Old = Returns::Old;

constexpr unsigned bytes_of_type(Type type) {
    switch (type) {
        case Type::none:
            return 0;
        case Type::u8:
        case Type::i8:
            return 1;
        case Type::u16:
        case Type::i16:
        case Type::f16:
            return 2;
        case Type::u64:
        case Type::i64:
        case Type::f64:
        case Type::mask:
            return 8;
        case Type::u128:
            return 16;
        default:
            return 4;
    }
}

constexpr std::uint8_t regs(Type type, unsigned count = 1) {
    return type == Type::none ? std::uint8_t{0} : registers_of(bytes_of_type(type), count);
}

constexpr OpInfo alu(const char* name, Encoding encoding, std::uint16_t code, Type d, Type a,
                     Type b, Type c, Trait trait = Trait::Plain) {
    return {name, encoding, code, d, {a, b, c}, trait};
}

constexpr OpInfo memory(const char* name, Encoding encoding, std::uint16_t code,
                        std::uint8_t result, std::uint8_t data, std::uint8_t operands,
                        Trait trait = Trait::Plain) {
    return {name,  encoding, code, Type::none, {Type::none, Type::none, Type::none},
            trait, result,   data, operands};
}

/// The trait of a memory row, by its column `part`: Whole, Packed, Low or High.
constexpr Trait part_trait(const char* part) {
    const bool is_half = part[0] == 'L' || part[0] == 'H';
    if (is_half) return Trait::KeepsHigh;
    return part[0] == 'P' ? Trait::Packed : Trait::Plain;
}

/// Number of registers that hold `count` components of a load or store with format conversion. If
/// `part` is Packed, two components share a register; if it is Low or High, `count` is 1.
constexpr std::uint8_t format_regs(unsigned count, const char* part) {
    return static_cast<std::uint8_t>(part[0] == 'W' ? count : (count + 1) / 2);
}

using enum Encoding;
#define ROW(kind, ...) kind(__VA_ARGS__)
#define T(t) Type::t
#define S2(n, c, d, a, b, v, s) alu(#n, Sop2, c, T(d), T(a), T(b), T(none)),
#define S1(n, c, d, a, v, s) alu(#n, Sop1, c, T(d), T(a), T(none), T(none)),
#define SE(n, c, v) alu(#n, Sop1, c, T(u64), T(u64), T(none), T(none), Trait::WritesExec),
#define SW(n, c, v) SE(n, c, v)
#define SX(n, c, d, a, f) alu(#n, Sop1, c, T(d), T(a), T(none), T(none)),
#define SX2(n, c, d, a, b, f) alu(#n, Sop2, c, T(d), T(a), T(b), T(none)),
#define SC(n, c, a, b, v) alu(#n, Sopc, c, T(none), T(a), T(b), T(none)),
#define SCX(n, c, a, b, f) SC(n, c, a, b, f)
#define SK(n, c, t, v, s) alu(#n, Sopk, c, T(t), T(none), T(none), T(none)),
#define SKC(n, c, t, v) alu(#n, Sopk, c, T(none), T(t), T(none), T(none)),
#define SKX(n, c, f) alu(#n, Sopk, c, T(u32), T(none), T(none), T(none)),
#define SP(n, c, f) alu(#n, Sopp, c, T(none), T(none), T(none), T(none)),
#define SB(n, c, v) SP(n, c, v)
#define SML(n, c, dwords) memory(#n, Smem, c, dwords, 0, 0),
#define SMB(n, c, dwords) memory(#n, Smem, c, dwords, 0, 0, Trait::BufferBase),
#define SMS(n, c, dwords) memory(#n, Smem, c, 0, dwords, 1),
#define SMT(n, c, dwords) memory(#n, Smem, c, 0, dwords, 1, Trait::BufferBase),
#define SMA(n, c, encoding, t, v) \
    memory(#n, encoding, c, regs(T(t)), regs(T(t)), atomic_operands(#n), Trait::OldResult),
#define SMBA(n, c, encoding, t, v) \
    memory(#n, encoding, c, regs(T(t)), regs(T(t)), atomic_operands(#n), Trait::BufferBase),
#define SMC(n, c, dwords) SML(n, c, dwords)
#define SMD(n, c, dwords) SMS(n, c, dwords)
#define SMP(n, c, f) memory(#n, Smem, c, 0, 0, 0),
#define SMBP(n, c, f) memory(#n, Smem, c, 0, 0, 0, Trait::BufferBase),
#define SMX(n, c, dwords, f) memory(#n, Smem, c, dwords, 0, 0, Trait::Constant),
#define V2(n, c, d, a, b, v) alu(#n, Vop2, c, T(d), T(a), T(b), T(none)),
#define VS2(n, c, d, a, b, v) V2(n, c, d, a, b, v)
#define VM2(n, c, d, a, b, v) alu(#n, Vop2, c, T(d), T(a), T(b), T(d), Trait::OldResult),
#define VK2(n, c, d, a, b, v) alu(#n, Vop2, c, T(d), T(a), T(b), T(d), Trait::Constant),
#define VB2(n, c, m, v, k, s) alu(#n, Vop2, c, T(u32), T(u32), T(u32), T(m), Trait::CarryOut),
#define VC2(n, c, d, a, b, v) alu(#n, Vop2, c, T(d), T(a), T(b), T(mask)),
#define V1(n, c, d, a, v) alu(#n, Vop1, c, T(d), T(a), T(none), T(none)),
#define VX1(n, c, d, a, f) V1(n, c, d, a, f)
#define VC(n, c, a, b, v) alu(#n, Vopc, c, T(mask), T(a), T(b), T(none)),
#define VCX(n, c, a, b, v) alu(#n, Vopc, c, T(mask), T(a), T(b), T(none), Trait::WritesExec),
#define V3(n, k, d, a, b, c, v) alu(#n, Vop3, k, T(d), T(a), T(b), T(c)),
#define VS3(n, k, d, a, b, c, v) V3(n, k, d, a, b, c, v)
#define VH3(n, k, d, a, b, c, v) alu(#n, Vop3, k, T(d), T(a), T(b), T(c), Trait::KeepsHigh),
#define VHS3(n, k, d, a, b, c, v) VH3(n, k, d, a, b, c, v)
#define VM3(n, k, d, a, b, v) alu(#n, Vop3, k, T(d), T(a), T(b), T(d), Trait::OldResult),
#define VB3(n, k, d, a, b, c, v, m, s) alu(#n, Vop3, k, T(d), T(a), T(b), T(c), Trait::CarryOut),
#define VX3(n, k, d, a, b, c, f) V3(n, k, d, a, b, c, f)
#define VP(n, k, t, count, v) alu(#n, Vop3p, k, T(u32), T(t), T(t), count == 3 ? T(t) : T(none)),
#define VPS(n, k, t, count, v) VP(n, k, t, count, v)
#define VF(n, k, part, v) alu(#n, Vop3p, k, T(u32), T(f32), T(f32), T(f32)),
#define DL(n, c, t, count, part) memory(#n, Ds, c, regs(T(t), count), 0, 0, part_trait(#part)),
#define DS2L(n, c, t, stride) memory(#n, Ds, c, regs(T(t), 2), 0, 0),
#define DW(n, c, t, count, part) memory(#n, Ds, c, 0, regs(T(t), count), 1),
#define DS2W(n, c, t, stride) memory(#n, Ds, c, 0, regs(T(t)), 2),
#define DA(n, c, t, r, v) \
    memory(#n, Ds, c, r == Old ? regs(T(t)) : std::uint8_t{0}, regs(T(t)), ds_operands(#n)),
#define DA2(n, c, t, v) memory(#n, Ds, c, 0, 0, 0),
#define DX2(n, c, t, stride) memory(#n, Ds, c, regs(T(t), 2), regs(T(t)), 2),
#define DX(n, c, d, a, f) memory(#n, Ds, c, regs(T(d)), regs(T(a)), regs(T(a))),
#define DG(n, c, a, f) memory(#n, Ds, c, 0, regs(T(a)), regs(T(a)), Trait::GlobalSync),
#define ML(n, c, encoding, t, count, part) \
    memory(#n, encoding, c, regs(T(t), count), 0, 0, part_trait(#part)),
#define MS(n, c, encoding, t, count, part) memory(#n, encoding, c, 0, regs(T(t), count), 1),
#define MA(n, c, encoding, t, v) \
    memory(#n, encoding, c, regs(T(t)), regs(T(t)), atomic_operands(#n), Trait::OldResult),
#define BL(n, c, encoding, count, part) \
    memory(#n, encoding, c, format_regs(count, #part), 0, 0, part_trait(#part)),
#define BS(n, c, encoding, count, part) memory(#n, encoding, c, 0, format_regs(count, #part), 1),
#define MLDS(n, c, f) memory(#n, Mubuf, c, 0, 0, 0),
#define MX(n, c, f) memory(#n, Mubuf, c, 0, 0, 0, Trait::Constant),

constexpr bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// Number of an atomic's data operands. A compare-and-swap has two: the data and, in the registers
/// after the data, the comparand.
constexpr std::uint8_t atomic_operands(const char* name) {
    return contains(name, "cmpswap") ? 2 : 1;
}

constexpr std::uint8_t ds_operands(const char* name) {
    return contains(name, "cmpst") || contains(name, "mskor") || contains(name, "wrap") ? 2 : 1;
}

constexpr std::array<OpInfo, kOpCount> kInfo{{
#include "pf-driver/softgpu/isa/ops/all.inc"
}};
#undef ROW
#undef T

/// True if every row's opcode is below kCodes and no two rows of one encoding have the same opcode.
/// Makes one pass over the rows, because compilers limit the steps of a constant expression.
constexpr bool numbers_are_unique() {
    std::array<bool, kEncodings * kCodes> is_taken{};
    for (const OpInfo& op : kInfo) {
        if (op.code >= kCodes) return false;
        bool& taken = is_taken[static_cast<std::size_t>(op.encoding) * kCodes + op.code];
        if (taken) return false;
        taken = true;
    }
    return true;
}
static_assert(numbers_are_unique());

constexpr OpInfo kIllegal =
    alu("illegal", Encoding::Sopp, 0xffff, Type::none, Type::none, Type::none, Type::none);

/// Maps an opcode number to its operation, for every encoding. VOP3 also has nearly all operations
/// of VOPC, VOP2 and VOP1. The first find_op() builds the tables.
struct OpTables {
    std::array<std::array<Op, kCodes>, kEncodings> by_code;

    OpTables() {
        for (auto& table : by_code) table.fill(Op::Illegal);
        for (std::size_t i = 0; i < kOpCount; ++i) add(static_cast<Op>(i));
    }
    void add(Op op) {
        const OpInfo& row = info(op);
        at(row.encoding, row.code) = op;
        const bool has_constant = row.trait == Trait::Constant;
        if (row.encoding == Encoding::Vopc) at(Encoding::Vop3, row.code) = op;
        if (row.encoding == Encoding::Vop2 && !has_constant)
            at(Encoding::Vop3, row.code + enc::kVop3OfVop2) = op;
        if (row.encoding == Encoding::Vop1 && op != Op::v_swap_b32 && op != Op::v_readfirstlane_b32)
            at(Encoding::Vop3, row.code + enc::kVop3OfVop1) = op;
    }
    Op& at(Encoding encoding, std::size_t code) {
        return by_code[static_cast<std::size_t>(encoding)][code];
    }
    [[nodiscard]] Op get(Encoding encoding, std::size_t code) const {
        return by_code[static_cast<std::size_t>(encoding)][code];
    }
};

}  // namespace

const OpInfo& info(Op op) {
    return op == Op::Illegal ? kIllegal : kInfo[static_cast<std::size_t>(op)];
}

Op find_op(Encoding encoding, std::uint32_t code) {
    static const OpTables tables;
    return tables.get(encoding, code);
}

}  // namespace vgpu::softgpu::isa
