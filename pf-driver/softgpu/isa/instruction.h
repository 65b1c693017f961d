// SPDX-License-Identifier: MIT
//
// Instruction: one decoded instruction, with its operation, its operands, and the function that
// executes it. The operations are the rows of the tables in ops/all.inc; Op lists them in the same
// order.
//
// An Instruction depends only on the machine words, their address, and the variant of the execute
// units (decode.h), so waves can share it. decode() and DecodeCache (decode.h) make Instructions;
// run() (execute.h) executes them.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu::softgpu::isa {

/// All operations. A number may stand for another operation in another version of softgpu, so no
/// saved state may contain such a number.
enum class Op : std::uint16_t {
#define ROW(kind, mnemonic, ...) mnemonic,
#include "pf-driver/softgpu/isa/ops/all.inc"
#undef ROW
    Illegal,
};
/// Number of operations, without Illegal.
inline constexpr std::size_t kOpCount = static_cast<std::size_t>(Op::Illegal);

/// The type of an operand. It determines the operand's width and the value of inline constants.
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
    mask,        ///< one bit per lane, in a pair of scalar registers
    sgpr,        ///< a scalar register that is the result of a vector operation
    lane_index,  ///< a scalar that selects a lane
    lane_value,  ///< a scalar that is written to one lane
};

/// What an operand is, and the meaning of Operand::value.
enum class OperandKind : std::uint8_t {
    None,
    Vgpr,            ///< `value` is the number of the first VGPR
    Scalar,          ///< `value` is an index into the scalar register file (wave.h)
    Constant,        ///< `value` is zero-extended if 64 bits are read
    ConstantSigned,  ///< `value` is sign-extended if 64 bits are read
    ConstantHigh,    ///< `value` is the high half if 64 bits are read; the low half is 0
    InverseTwoPi,    ///< the 64-bit constant 1 / (2 * pi)
    Special,         ///< a special operand (encoding.h): `value` is the operand number
};

/// Part of a 32-bit register, numbered as in the encoding SDWA (sub-dword addressing).
enum class Select : std::uint8_t { Byte0, Byte1, Byte2, Byte3, Word0, Word1, Dword };

/// What an SDWA instruction does to the other bits of a register if it writes only a part. After
/// SignExtend, the bits below the part are 0.
enum class Unused : std::uint8_t { Zero, SignExtend, Preserve };

/// One source, ready to be read.
struct Operand {
    OperandKind kind = OperandKind::None;
    std::uint8_t regs = 0;  ///< number of registers read, beginning with `value`; 0: none
    bool negate = false;    ///< NEG
    bool absolute = false;  ///< ABS, which is applied before NEG
    std::uint32_t value = 0;
    bool is_literal = false;  ///< true for the literal constant, the word after the instruction
};

/// A wrapper around the operation (modifiers.cpp).
enum class Modifier : std::uint8_t {
    None,
    Sdwa,  ///< reads or writes parts of registers (SDWA, OP_SEL)
    Dpp,   ///< reads source 0 from other lanes (DPP, data-parallel primitives)
};

/// The fields of MODE that determine the host's rounding mode and its treatment of denormal results
/// during an operation: those for singles, or those for doubles and halves. None: MODE does not
/// change the host's float mode. host_float_mode() in modifiers.cpp uses this type.
enum class FloatClass : std::uint8_t { None, Single, DoubleOrHalf };

/// How the run loop continues after an instruction. A slice here is a run of one wave, after which
/// the run loop picks the next wave (execute.h).
enum class Outcome : std::uint8_t {
    Next,
    Jump,          ///< the wave's pc has been set
    Yield,         ///< continue after the instruction in the wave's next slice
    JumpAndYield,  ///< the wave's pc has been set; continue at that pc in the wave's next slice
    Fault,         ///< a memory access failed; the pc stays at the instruction
    Illegal,       ///< an illegal instruction; the pc stays at the instruction
    Trap,          ///< s_trap; the wave enters its trap handler or is halted
    Exception,     ///< MODE enables an exception that occurred; the result has been written
};

struct Env;
struct Instruction;
using Handler = Outcome (*)(Env&, const Instruction&);

/// decode() sets all fields except `handler`, `inner` and `pc`, which DecodeCache sets.
struct Instruction {
    Handler handler = nullptr;  ///< executes the instruction
    Handler inner = nullptr;    ///< executes the operation without its modifier
    /// Address of the instruction. Branches and s_getpc use the address after it, pc + size.
    std::uint64_t pc = 0;
    Op op = Op::Illegal;
    std::uint8_t size = 4;  ///< bytes: 4 or 8
    /// First register of the result, in the vector or the scalar register file. In some operations
    /// of SOP1 and SOPK this register is also a source, or only a source; in SMEM stores and
    /// atomics it holds the data.
    std::uint8_t dst = 0;
    std::uint8_t dst_regs = 0;  ///< number of VGPRs written
    std::uint8_t sdst = 0;      ///< first register of the scalar pair that receives a mask
    /// CLAMP; true: a float result is clamped to [0, 1]; an integer result saturates, if the
    /// operation supports that.
    bool clamp = false;
    std::uint8_t omod = 0;   ///< OMOD: 0: none, 1: * 2, 2: * 4, 3: / 2
    bool keep_high = false;  ///< true if a 16-bit result leaves the other half unchanged
    FloatClass float_class = FloatClass::None;
    /// True if a block (decode.h) must end with this instruction, for example because it is illegal
    /// or a branch (all cases: finish() in decode.cpp).
    bool ends_block = false;
    Modifier modifier = Modifier::None;
    bool returns = false;  ///< GLC; true: an atomic returns the old value
    /// ALU: the sources. SMEM: base, offset. DS: address, data 0, data 1 (GWS: only data). FLAT,
    /// GLOBAL, SCRATCH: address, data, SADDR. MUBUF, MTBUF: VADDR, VDATA, descriptor, SOFFSET.
    std::array<Operand, 4> src{};
    /// A constant of the instruction, such as an offset or a branch distance in dwords.
    std::int32_t imm = 0;

    // SDWA, and OP_SEL of VOP3
    /// The parts of sources 0 and 1 that are read.
    std::array<Select, 2> select{Select::Dword, Select::Dword};
    std::array<bool, 2> sign_extend{};  ///< true: the part is sign-extended, else zero-extended
    Select dst_select = Select::Dword;
    Unused dst_unused = Unused::Zero;
    Select select2 = Select::Dword;  ///< part of source 2; only OP_SEL sets it
    // DPP
    std::uint16_t dpp_control = 0;  ///< DPP_CTRL (enc::kDppRowShl ...)
    std::uint8_t row_mask = 0xf;    ///< bit n enables row n: lanes 16 * n to 16 * n + 15
    std::uint8_t bank_mask = 0xf;   ///< bit n enables lanes 4 * n to 4 * n + 3 of each row
    bool bound_zero = false;        ///< true: a lane without a valid source lane reads 0
    // VOP3P: bit k is for source k. v_mad_mix* use the bits differently: see mixed_source() in
    // unit_vector.cpp.
    std::uint8_t op_sel = 0;     ///< 1: the low result uses the source's high half
    std::uint8_t op_sel_hi = 0;  ///< 1: the high result uses the source's high half
    std::uint8_t negate_hi = 0;  ///< 1: the high result uses the negated source
    // MUBUF, MTBUF
    bool offset_enable = false;  ///< OFFEN: VADDR holds an offset, after the index if there is one
    bool index_enable = false;   ///< IDXEN: VADDR holds an index
    bool to_lds = false;         ///< LDS bit; true: the data goes to or comes from LDS
    std::uint8_t format = 0;     ///< MTBUF: enc::kDataFormat and enc::kNumberFormat

    /// The machine words, for error reports; the second is 0 if `size` is 4.
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

/// How an operation differs from the other operations of its encoding.
enum class Trait : std::uint8_t {
    Plain,
    CarryOut,   ///< writes a mask in addition to the result
    OldResult,  ///< ALU: source 2 is the old destination. Memory: an atomic. (Atomics of encoding
                ///< Ds are Plain; scalar atomics in a buffer are BufferBase.)
    Constant,   ///< ALU: source 2 is the literal constant. Memory: there is no address
    WritesExec,
    KeepsHigh,   ///< a 16-bit result leaves the other half of the register unchanged
    Packed,      ///< 16-bit components, two in a register
    BufferBase,  ///< the base of an SMEM operation is a buffer descriptor
    GlobalSync,  ///< a DS operation of global wave sync: the ADDR field names its data
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
    std::uint8_t result_regs = 0;    ///< registers of the result; 0: no result
    std::uint8_t data_regs = 0;      ///< registers of each data operand
    std::uint8_t data_operands = 0;  ///< 0 to 2
};

/// The row of an operation; Op::Illegal has a row named "illegal".
[[nodiscard]] const OpInfo& info(Op op);
/// The operation with the opcode number `code`, which must be below 1024. Op::Illegal if the
/// encoding has no such opcode.
[[nodiscard]] Op find_op(Encoding encoding, std::uint32_t code);

}  // namespace vgpu::softgpu::isa
