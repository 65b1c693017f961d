// SPDX-License-Identifier: MIT
//
// One decoded instruction: its operation, its operands, and the function that executes it. The
// operations are the rows of ops/*.def; Op lists them in the same order.
//
// An Instruction depends only on the machine words, the address they were found at and the variant
// of the execute unit, so all waves that execute it can share it. Made by isa/decode, executed by
// isa/execute.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu::softgpu::isa {

/// All operations. The numbers hold for this build only: nothing that is stored may contain one.
enum class Op : std::uint16_t {
#define ROW(kind, mnemonic, ...) mnemonic,
#include "pf-driver/softgpu/isa/ops/all.inc"
#undef ROW
    Illegal,
};
inline constexpr std::size_t kOpCount = static_cast<std::size_t>(Op::Illegal);

/// The type of an operand: decides its width and how constants are made.
enum class Type : std::uint8_t {
    none,
    u8,
    i8,
    u16,
    i16,
    f16,
    u32,
    i32,
    f32,
    u64,
    i64,
    f64,
    u128,        ///< four registers
    mask,        ///< one bit per lane in a scalar pair
    sgpr,        ///< a scalar register as result of a vector operation
    lane_index,  ///< a scalar that selects a lane
    lane_value,  ///< a scalar that is written to one lane
};

enum class OperandKind : std::uint8_t {
    None,
    Vgpr,
    Scalar,          ///< register in the scalar file
    Constant,        ///< `value` is zero-extended if 64 bits are read
    ConstantSigned,  ///< `value` is sign-extended if 64 bits are read
    ConstantHigh,    ///< `value` is the high half if 64 bits are read; the low half is 0
    InverseTwoPi,    ///< the 64-bit constant 1 / (2 * pi)
    Special,         ///< aperture, VCCZ, EXECZ, SCC, LDS_DIRECT: `value` is the operand number
};

/// Part of a 32-bit register, in the numbers of the SDWA encoding.
enum class Select : std::uint8_t { Byte0, Byte1, Byte2, Byte3, Word0, Word1, Dword };

/// The effect on the rest of a register if an SDWA instruction writes a part of it.
enum class Unused : std::uint8_t { Zero, SignExtend, Preserve };

/// One source, ready to be read.
struct Operand {
    OperandKind kind = OperandKind::None;
    std::uint8_t regs = 0;  ///< registers read from `value` on
    bool negate = false;
    bool absolute = false;
    std::uint32_t value = 0;
    bool is_literal = false;  ///< true for the constant after the instruction word
};

/// The wrapper through which the operation runs (modifiers.cpp).
enum class Modifier : std::uint8_t {
    None,
    Sdwa,  ///< parts of registers
    Dpp,   ///< source 0 from other lanes
};

/// The part of MODE (rounding, denormals) that applies to an operation.
enum class FloatClass : std::uint8_t { None, Single, DoubleOrHalf };

/// How the run loop continues after an instruction.
enum class Outcome : std::uint8_t {
    Next,
    Jump,          ///< the wave's pc has been set
    Yield,         ///< continue after the instruction in the wave's next slice
    JumpAndYield,  ///< the wave's pc has been set; continue at that pc in the wave's next slice
    Fault,         ///< a memory access failed; the pc stays at the instruction
    Illegal,       ///< the pc stays at the instruction
    Trap,          ///< s_trap
    Exception,     ///< MODE enables an exception that occurred; the result has been written
};

struct Env;
struct Instruction;
using Handler = Outcome (*)(Env&, const Instruction&);

/// decode() sets all fields except `handler`, `inner` and `pc`, which DecodeCache sets.
struct Instruction {
    Handler handler = nullptr;
    Handler inner = nullptr;  ///< the operation itself, also if `handler` is a modifier around it
    /// Address of the instruction. Branches and s_getpc use the address after it, pc + size.
    std::uint64_t pc = 0;
    Op op = Op::Illegal;
    std::uint8_t size = 4;  ///< bytes
    /// First register of the result, in the vector or the scalar file. In SOPK the register is also
    /// a source; in an SMEM store it holds the data.
    std::uint8_t dst = 0;
    std::uint8_t dst_regs = 0;  ///< vector registers written
    std::uint8_t sdst = 0;      ///< scalar pair that receives a mask
    /// True if float results are clamped to [0, 1], and integer results saturate if the operation
    /// can.
    bool clamp = false;
    std::uint8_t omod = 0;   ///< 1: * 2, 2: * 4, 3: / 2
    bool keep_high = false;  ///< true if a 16-bit result leaves the other half unchanged
    FloatClass float_class = FloatClass::None;
    /// True if this instruction is the last of its block: it is illegal, or it may jump, end the
    /// slice, or change MODE or the register index in M0.
    bool ends_block = false;
    Modifier modifier = Modifier::None;
    bool returns = false;  ///< GLC; true: an atomic returns the old value
    std::array<Operand, 4> src{};
    std::int32_t imm = 0;  ///< offset, branch distance or another constant

    // SDWA (and halves chosen by OP_SEL)
    std::array<Select, 2> select{Select::Dword, Select::Dword};
    std::array<bool, 2> sign_extend{};
    Select dst_select = Select::Dword;
    Unused dst_unused = Unused::Zero;
    Select select2 = Select::Dword;
    // DPP
    std::uint16_t dpp_control = 0;
    std::uint8_t row_mask = 0xf;
    std::uint8_t bank_mask = 0xf;
    bool bound_zero = false;
    // VOP3P
    std::uint8_t op_sel = 0;
    std::uint8_t op_sel_hi = 0;
    std::uint8_t negate_hi = 0;
    // MUBUF, MTBUF
    bool offset_enable = false;
    bool index_enable = false;
    bool to_lds = false;      ///< LDS bit; true: the data goes to or comes from LDS
    std::uint8_t format = 0;  ///< MTBUF: data and number format (enc::kMtbufFormat)

    /// The machine words, for error reports; the second is 0 for a short instruction.
    std::array<std::uint32_t, 2> words{};
};

/// The format of the machine words of an operation (Vega ISA manual, "Microcode Formats").
enum class Encoding : std::uint8_t {
    Sop2,
    Sop1,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop2,
    Vop1,
    Vopc,
    Vop3,
    Vop3p,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
};

/// How an operation differs from most operations of its encoding.
enum class Trait : std::uint8_t {
    Plain,
    CarryOut,   ///< writes a mask in addition to the result
    OldResult,  ///< ALU: source 2 is the old destination. Memory: the operation is an atomic
    Constant,   ///< ALU: source 2 is the literal constant. Memory: there is no address
    WritesExec,
    KeepsHigh,   ///< a 16-bit result leaves the other half of the register unchanged
    Packed,      ///< 16-bit components, two in a register
    BufferBase,  ///< the base of an SMEM operation is a buffer descriptor
    GlobalSync,  ///< a DS operation on the counters of global wave sync; its data is in the
                 ///< register in which other DS operations have their address
};

/// One row of ops/*.def as data.
struct OpInfo {
    const char* name;
    Encoding encoding;
    /// Opcode number inside its encoding.
    std::uint16_t code;
    Type dst;
    std::array<Type, 3> src;
    Trait trait = Trait::Plain;
    // only used for memory operations
    std::uint8_t result_regs = 0;
    std::uint8_t data_regs = 0;  ///< registers of each data operand
    std::uint8_t data_operands = 0;
};

/// The row of an operation; Op::Illegal has a row named "illegal".
[[nodiscard]] const OpInfo& info(Op op);
/// The operation with the opcode number `code`, which has at most 10 bits; Op::Illegal if the
/// encoding has no such number.
[[nodiscard]] Op find_op(Encoding encoding, std::uint32_t code);

}  // namespace vgpu::softgpu::isa
