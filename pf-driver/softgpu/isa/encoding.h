// SPDX-License-Identifier: MIT
//
// Fields of gfx900 machine words (Vega ISA manual, chapter "Microcode Formats") and the meaning of
// operand numbers. Opcode numbers are in ops/*.def.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa::enc {

/// Bits [first, first + count) of a machine word. In an encoding of two words, decode.cpp shows
/// which word has the field.
struct Field {
    unsigned first;
    unsigned count;
};

// Prefixes: the first word `w` has encoding X if (w & kXMask) == kX. If several prefixes match, the
// one with the longest mask determines the encoding.
inline constexpr std::uint32_t kVop1Mask = 0xfe000000, kVop1 = 0x7e000000;
inline constexpr std::uint32_t kVopcMask = 0xfe000000, kVopc = 0x7c000000;
inline constexpr std::uint32_t kVop2Mask = 0x80000000, kVop2 = 0x00000000;
inline constexpr std::uint32_t kSop1Mask = 0xff800000, kSop1 = 0xbe800000;
inline constexpr std::uint32_t kSopcMask = 0xff800000, kSopc = 0xbf000000;
inline constexpr std::uint32_t kSoppMask = 0xff800000, kSopp = 0xbf800000;
inline constexpr std::uint32_t kSopkMask = 0xf0000000, kSopk = 0xb0000000;
inline constexpr std::uint32_t kSop2Mask = 0xc0000000, kSop2 = 0x80000000;
inline constexpr std::uint32_t kSmemMask = 0xfc000000, kSmem = 0xc0000000;
inline constexpr std::uint32_t kVop3Mask = 0xfc000000, kVop3 = 0xd0000000;
inline constexpr std::uint32_t kDsMask = 0xfc000000, kDs = 0xd8000000;
inline constexpr std::uint32_t kFlatMask = 0xfc000000, kFlat = 0xdc000000;
inline constexpr std::uint32_t kMubufMask = 0xfc000000, kMubuf = 0xe0000000;
inline constexpr std::uint32_t kMtbufMask = 0xfc000000, kMtbuf = 0xe8000000;

// scalar
inline constexpr Field kSop2Op{23, 7}, kSop1Op{8, 8}, kSopcOp{16, 7}, kSoppOp{16, 7},
    kSopkOp{23, 5}, kSsrc0{0, 8}, kSsrc1{8, 8}, kSdst{16, 7}, kSimm16{0, 16};
inline constexpr Field kSmemOp{18, 8}, kSmemBase{0, 6}, kSmemData{6, 7}, kSmemSoffsetEnable{14, 1},
    kSmemGlc{16, 1}, kSmemImm{17, 1}, kSmemOffset{0, 21}, kSmemSgpr{0, 7}, kSmemSoffset{25, 7};
// vector
inline constexpr Field kVop2Op{25, 6}, kVop1Op{9, 8}, kVopcOp{17, 8}, kSrc0{0, 9}, kVsrc1{9, 8},
    kVdst{17, 8};
inline constexpr Field kVop3Op{16, 10}, kVop3Vdst{0, 8}, kVop3Abs{8, 3}, kVop3OpSel{11, 4},
    kVop3Sdst{8, 7}, kVop3Clamp{15, 1}, kVop3Src0{0, 9}, kVop3Src1{9, 9}, kVop3Src2{18, 9},
    kVop3Omod{27, 2}, kVop3Neg{29, 3};
inline constexpr Field kVop3pOp{16, 7}, kVop3pOpSel{11, 3}, kVop3pOpSelHi2{14, 1},
    kVop3pOpSelHi{27, 2};
/// Most operations of VOP2, VOP1 and VOPC also have a VOP3 form. For their opcode n, this form has
/// the opcode kVop3OfVop2 + n, kVop3OfVop1 + n or n, respectively. VOP3 opcodes from kFirstVop3p on
/// belong to VOP3P.
inline constexpr std::uint32_t kVop3OfVop2 = 0x100, kVop3OfVop1 = 0x140, kFirstVop3p = 0x380;
inline constexpr Field kSdwaSrc0{0, 8}, kSdwaDstSel{8, 3}, kSdwaDstUnused{11, 2}, kSdwaClamp{13, 1},
    kSdwaOmod{14, 2}, kSdwaSel0{16, 3}, kSdwaMod0{19, 3}, kSdwaScalar0{23, 1}, kSdwaSel1{24, 3},
    kSdwaMod1{27, 3}, kSdwaScalar1{31, 1}, kSdwaSdst{8, 7}, kSdwaHasSdst{15, 1};
inline constexpr Field kDppControl{8, 9}, kDppBound{19, 1}, kDppMods{20, 4}, kDppBankMask{24, 4},
    kDppRowMask{28, 4};
// memory
inline constexpr Field kDsOp{17, 8}, kDsOffsets{0, 16}, kDsGds{16, 1}, kDsAddress{0, 8},
    kDsData0{8, 8}, kDsData1{16, 8}, kDsVdst{24, 8};
inline constexpr Field kFlatOp{18, 7}, kFlatOffset{0, 13}, kFlatLds{13, 1}, kFlatSegment{14, 2},
    kFlatGlc{16, 1}, kFlatSlc{17, 1}, kFlatAddress{0, 8}, kFlatData{8, 8}, kFlatSaddr{16, 7},
    kFlatVdst{24, 8};
/// The offset of FLAT is unsigned and has only the low 12 bits of kFlatOffset; the offset of GLOBAL
/// and SCRATCH is signed and has all 13. kNoSaddr in kFlatSaddr: there is no scalar address.
inline constexpr std::uint32_t kFlatUnsignedMask = 0xfff, kNoSaddr = 0x7f;
inline constexpr Field kMubufOp{18, 7}, kMubufOffset{0, 12}, kMubufOffen{12, 1}, kMubufIdxen{13, 1},
    kMubufGlc{14, 1}, kMubufLds{16, 1}, kMubufSlc{17, 1}, kMubufVaddr{0, 8}, kMubufVdata{8, 8},
    kMubufSrsrc{16, 5}, kMubufTfe{23, 1}, kMubufSoffset{24, 8};
// MTBUF has its other fields where MUBUF has them.
inline constexpr Field kMtbufOp{15, 4}, kMtbufFormat{19, 7}, kMtbufSlc{22, 1};
/// The data format and the number format: the two parts of the value of the field kMtbufFormat.
inline constexpr Field kDataFormat{0, 4}, kNumberFormat{4, 3};

// Operand numbers of sources. All numbers without a meaning here are illegal.
//   0 to kScalars - 1               scalar registers
//   kZero to kLastPositive          the integers 0 to 64
//   up to kLastNegative             the integers -1 to -16
//   kFirstFloat to kInverseTwoPi    kFloatConstants
//   kSdwa, kDpp                     source 0 is in the second word, which has SDWA or DPP fields
//   kLiteral                        the literal constant: the word after the instruction
//   kFirstVgpr + n                  VGPR n
//   kSharedBase to kPrivateLimit,
//   kVccZero to kLdsDirect          special operands: see is_special()
inline constexpr std::uint32_t kScalars = 128, kVgprs = 256, kFirstVgpr = 256, kVcc = 106;
inline constexpr std::uint32_t kZero = 128, kLastPositive = 192, kLastNegative = 208;
inline constexpr std::uint32_t kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237,
                               kPrivateLimit = 238;
inline constexpr std::uint32_t kFirstFloat = 240, kInverseTwoPi = 248;
inline constexpr std::uint32_t kSdwa = 249, kDpp = 250, kVccZero = 251, kExecZero = 252, kScc = 253,
                               kLdsDirect = 254, kLiteral = 255;

/// True for the numbers of special operands (OperandKind::Special).
constexpr bool is_special(std::uint32_t code) {
    return (code >= kSharedBase && code <= kPrivateLimit) ||
           (code >= kVccZero && code <= kLdsDirect);
}

/// An inline constant in each float format. `double_high` is the high word of the double, whose low
/// word is 0. Only 1/(2 pi) has another low word; its double is kInverseTwoPiDouble.
struct FloatConstant {
    std::uint16_t half;
    std::uint32_t single;
    std::uint32_t double_high;
};
/// The constants of the operand numbers from kFirstFloat on: 0.5, -0.5, 1, -1, 2, -2, 4, -4,
/// 1/(2 pi).
inline constexpr std::array<FloatConstant, 9> kFloatConstants{{
    {0x3800, 0x3f000000, 0x3fe00000},
    {0xb800, 0xbf000000, 0xbfe00000},
    {0x3c00, 0x3f800000, 0x3ff00000},
    {0xbc00, 0xbf800000, 0xbff00000},
    {0x4000, 0x40000000, 0x40000000},
    {0xc000, 0xc0000000, 0xc0000000},
    {0x4400, 0x40800000, 0x40100000},
    {0xc400, 0xc0800000, 0xc0100000},
    {0x3118, 0x3e22f983, 0x3fc45f30},
}};
inline constexpr std::uint64_t kInverseTwoPiDouble = 0x3fc45f306dc9c882;

// Values of DPP_CTRL: each determines from which lane a lane reads. Values up to kDppQuadPermLast
// permute the four lanes of each quad. To kDppRowShl, kDppRowShr and kDppRowRor, a distance of 1 to
// 15 is added.
inline constexpr std::uint16_t kDppQuadPermLast = 0xff, kDppRowShl = 0x100, kDppRowShr = 0x110,
                               kDppRowRor = 0x120, kDppWaveShl = 0x130, kDppWaveRol = 0x134,
                               kDppWaveShr = 0x138, kDppWaveRor = 0x13c, kDppRowMirror = 0x140,
                               kDppRowHalfMirror = 0x141, kDppRowBcast15 = 0x142,
                               kDppRowBcast31 = 0x143;

/// True if DPP_CTRL may have this value.
constexpr bool is_dpp_control(std::uint16_t control) {
    if (control <= kDppQuadPermLast) return true;
    if (control > kDppRowShl && control < kDppRowShl + 16) return true;
    if (control > kDppRowShr && control < kDppRowShr + 16) return true;
    if (control > kDppRowRor && control < kDppRowRor + 16) return true;
    return control == kDppWaveShl || control == kDppWaveRol || control == kDppWaveShr ||
           control == kDppWaveRor || (control >= kDppRowMirror && control <= kDppRowBcast31);
}

/// Sign-extends the low `bits` bits (1 to 32) of `value`.
constexpr std::int32_t sign_extend(std::uint32_t value, unsigned bits) {
    const unsigned shift = 32 - bits;
    return static_cast<std::int32_t>(value << shift) >> shift;
}

/// True if a block (decode.h) must end with the SOPP operation `op`: the operation may jump, end
/// the wave's slice (execute.h), or change MODE or M0.
constexpr bool ends_block_sopp(Op op) {
    return op != Op::s_nop && op != Op::s_waitcnt && op != Op::s_wakeup && op != Op::s_setprio &&
           op != Op::s_sendmsg && op != Op::s_incperflevel && op != Op::s_decperflevel &&
           op != Op::s_ttracedata;
}

}  // namespace vgpu::softgpu::isa::enc
