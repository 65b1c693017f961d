// SPDX-License-Identifier: MIT
//
// Decoding and printing against LLVM's disassembler: every row by its number, and every number that
// LLVM knows. Random words are in random_words_test.
#include <gtest/gtest.h>

#include <set>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/decode.h"
#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/support/isa/disassemble.h"
#include "tests/unit/isa/llvm_text.h"
#include "tests/unit/isa/opcode_numbers.h"

namespace vgpu::softgpu::isa {
namespace {

using test::bytes_text;
using test::has_llvm_mc;
using test::llvm_texts;
using test::LlvmText;
using test::Words;
using namespace test_numbers;

std::uint32_t source_field(Type type, std::uint32_t vgpr) {
    const bool is_scalar =
        type == Type::mask || type == Type::lane_index || type == Type::lane_value;
    if (type == Type::none) return 0;
    return is_scalar ? 4 : enc::kFirstVgpr + vgpr;
}

Words vop3_words(const OpInfo& row, std::uint32_t code) {
    const std::uint32_t sdst = row.trait == Trait::CarryOut ? put(enc::kVop3Sdst, enc::kVcc) : 0;
    const bool has_src2 = row.trait != Trait::OldResult && row.encoding != Encoding::Vop2
                              ? row.src[2] != Type::none
                              : row.src[2] == Type::mask;
    return {enc::kVop3 | put(enc::kVop3Op, code) | put(enc::kVop3Vdst, 8) | sdst,
            put(enc::kVop3Src0, source_field(row.src[0], 2)) |
                put(enc::kVop3Src1, source_field(row.src[1], 4)) |
                (has_src2 ? put(enc::kVop3Src2, source_field(row.src[2], 6)) : 0)};
}

Words memory_words(const OpInfo& row, std::uint32_t prefix, enc::Field op) {
    const std::uint32_t data = row.data_regs != 0 ? 4 : 0;
    const std::uint32_t result = row.result_regs != 0 && row.trait != Trait::OldResult ? 12 : 0;
    std::uint32_t second =
        put(enc::kFlatAddress, 2) | put(enc::kFlatData, data) | put(enc::kFlatVdst, result);
    if (row.encoding == Encoding::Global || row.encoding == Encoding::Scratch)
        second |= put(enc::kFlatSaddr, enc::kNoSaddr);
    return {prefix | put(op, row.code), second};
}

Words ds_words(const OpInfo& row) {
    if (row.trait == Trait::GlobalSync)
        return {enc::kDs | put(enc::kDsOp, row.code) | put(enc::kDsGds, 1),
                put(enc::kDsAddress, row.data_regs != 0 ? 2 : 0)};
    const std::string name = row.name;
    const bool has_address = name.find("addtid") == std::string::npos && name != "ds_nop" &&
                             name != "ds_append" && name != "ds_consume";
    return {enc::kDs | put(enc::kDsOp, row.code),
            (has_address ? put(enc::kDsAddress, 2) : 0) |
                (row.data_operands > 0 ? put(enc::kDsData0, 4) : 0) |
                (row.data_operands > 1 ? put(enc::kDsData1, 6) : 0) |
                (row.result_regs != 0 ? put(enc::kDsVdst, 12) : 0)};
}

Words smem_words(const OpInfo& row) {
    const bool has_address = row.trait != Trait::Constant;
    const bool has_data = row.result_regs != 0 || row.data_regs != 0;
    return {enc::kSmem | put(enc::kSmemOp, row.code) | (has_data ? put(enc::kSmemData, 16) : 0) |
                (has_address ? put(enc::kSmemBase, 2) | put(enc::kSmemImm, 1) : 0),
            has_address ? 16u : 0u};
}

Words mubuf_words(const OpInfo& row) {
    if (row.trait == Trait::Constant) return {enc::kMubuf | put(enc::kMubufOp, row.code), 0};
    if (std::string(row.name) == "buffer_store_lds_dword")
        return {enc::kMubuf | put(enc::kMubufOp, row.code) | put(enc::kMubufLds, 1),
                put(enc::kMubufSrsrc, 2) | put(enc::kMubufSoffset, 3)};
    return {enc::kMubuf | put(enc::kMubufOp, row.code) | put(enc::kMubufOffen, 1),
            put(enc::kMubufVaddr, 2) | put(enc::kMubufVdata, 4) | put(enc::kMubufSrsrc, 2) |
                put(enc::kMubufSoffset, 3)};
}

Words mtbuf_words(const OpInfo& row) {
    constexpr std::uint32_t float32 = 0x74;
    return {enc::kMtbuf | put(enc::kMtbufOp, row.code) | put(enc::kMubufIdxen, 1) |
                put(enc::kMtbufFormat, float32),
            put(enc::kMubufVaddr, 2) | put(enc::kMubufVdata, 4) | put(enc::kMubufSrsrc, 2) |
                put(enc::kMubufSoffset, 3)};
}

Words vop3p_words(const OpInfo& row) {
    Words words = vop3_words(row, row.code + enc::kFirstVop3p);
    const bool is_mixed = row.src[0] == Type::f32;
    if (is_mixed) return words;
    words[1] |= put(enc::kVop3pOpSelHi, 3);
    words[0] |= put(enc::kVop3pOpSelHi2, 1);
    return words;
}

/// An instruction of the row with plain operands.
Words words_for(const OpInfo& row) {
    const std::uint32_t ssrc = row.src[0] == Type::none ? 0 : 4;
    const std::uint32_t vsrc0 = source_field(row.src[0], 2);
    switch (row.encoding) {
        case Encoding::Sop2:
            return {enc::kSop2 | put(enc::kSop2Op, row.code) |
                    put(enc::kSdst, row.dst == Type::none ? 0u : 8u) | put(enc::kSsrc0, 4) |
                    put(enc::kSsrc1, 6)};
        case Encoding::Sop1:
            return {enc::kSop1 | put(enc::kSop1Op, row.code) |
                    put(enc::kSdst, row.dst == Type::none ? 0u : 8u) | ssrc};
        case Encoding::Sopc:
            return {enc::kSopc | put(enc::kSopcOp, row.code) | put(enc::kSsrc0, 4) |
                    put(enc::kSsrc1, 6)};
        case Encoding::Sopk:
            if (std::string(row.name) == "s_setreg_imm32_b32")
                return {enc::kSopk | put(enc::kSopkOp, row.code) | 0xf801, 0x12345678};
            return {enc::kSopk | put(enc::kSopkOp, row.code) | put(enc::kSdst, 8) | 5};
        case Encoding::Sopp:
            return {enc::kSopp | put(enc::kSoppOp, row.code)};
        case Encoding::Smem:
            return smem_words(row);
        case Encoding::Vop2: {
            Words words{enc::kVop2 | put(enc::kVop2Op, row.code) | put(enc::kVdst, 8) |
                        put(enc::kVsrc1, 4) | vsrc0};
            if (row.trait == Trait::Constant) words.push_back(0x3c00);
            return words;
        }
        case Encoding::Vop1:
            return {enc::kVop1 | put(enc::kVop1Op, row.code) |
                    put(enc::kVdst, row.dst == Type::none ? 0u : 8u) | vsrc0};
        case Encoding::Vopc:
            return {enc::kVopc | put(enc::kVopcOp, row.code) | put(enc::kVsrc1, 4) | vsrc0};
        case Encoding::Vop3:
            return vop3_words(row, row.code);
        case Encoding::Vop3p:
            return vop3p_words(row);
        case Encoding::Ds:
            return ds_words(row);
        case Encoding::Mubuf:
            return mubuf_words(row);
        case Encoding::Mtbuf:
            return mtbuf_words(row);
        case Encoding::Flat:
            return memory_words(row, enc::kFlat, enc::kFlatOp);
        case Encoding::Scratch:
            return memory_words(row, enc::kFlat | 0x4000, enc::kFlatOp);
        case Encoding::Global:
            return memory_words(row, enc::kFlat | 0x8000, enc::kFlatOp);
    }
    return {};
}

TEST(Encoding, EveryRowReadsAsLlvmReadsItsNumber) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    std::vector<Words> all;
    for (std::size_t i = 0; i < kOpCount; ++i) all.push_back(words_for(info(static_cast<Op>(i))));
    const auto texts = llvm_texts(all);
    for (std::size_t i = 0; i < kOpCount; ++i) {
        const Op op = static_cast<Op>(i);
        const std::string name = info(op).name;
        const Instruction decoded = decode(all[i]);
        EXPECT_EQ(decoded.op, op) << name << " decoded as " << disassemble(decoded);
        EXPECT_EQ(decoded.size, all[i].size() * 4) << name;
        EXPECT_TRUE(texts[i].is_accepted) << name << ": LLVM refuses " << bytes_text(all[i]);
        if (has_symbols(name))
            EXPECT_EQ(texts[i].base_name(), name);
        else
            EXPECT_EQ(disassemble(decoded), texts[i].text) << bytes_text(all[i]);
    }
}

TEST(Encoding, ShortVectorFormsAreAlsoFoundInTheLongEncoding) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    std::vector<Words> all;
    std::vector<Op> ops;
    for (std::size_t i = 0; i < kOpCount; ++i) {
        const OpInfo& row = info(static_cast<Op>(i));
        const bool has_long_form = row.trait != Trait::Constant && row.dst != Type::sgpr &&
                                   static_cast<Op>(i) != Op::v_swap_b32 && row.dst != Type::none;
        const std::uint32_t base = row.encoding == Encoding::Vop2   ? enc::kVop3OfVop2
                                   : row.encoding == Encoding::Vop1 ? enc::kVop3OfVop1
                                                                    : 0;
        const bool is_short = row.encoding == Encoding::Vop1 || row.encoding == Encoding::Vop2 ||
                              row.encoding == Encoding::Vopc;
        if (!is_short || !has_long_form) continue;
        all.push_back(vop3_words(row, row.code + base));
        ops.push_back(static_cast<Op>(i));
    }
    const auto texts = llvm_texts(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(decode(all[i]).op, ops[i]) << info(ops[i]).name;
        EXPECT_EQ(disassemble(decode(all[i])), texts[i].text) << bytes_text(all[i]);
    }
}

// ---- coverage

/// Operand fields with which LLVM knows each opcode by at least one: it refuses unused fields that
/// are not zero, and operands that begin at an odd place.
constexpr std::uint32_t kSecondWords[] = {
    0,          0x04,       0x0400,     0x040000,   0x04000000, 0x0404,      0x040404,
    0x04040404, 0x04000404, 0x04000004, 0x04040004, 0x00020104, 0x0402'0104, 0x80020000,
    0x007f0000, 0x047f0004, 0x007f0404, 0x00010101, 0x7e000000};
constexpr std::uint32_t kFirstWords[] = {0, 0x00010000, 0x00020004, 0x101};

bool is_row(Encoding encoding, const std::string& name) {
    for (std::size_t i = 0; i < kOpCount; ++i) {
        const OpInfo& row = info(static_cast<Op>(i));
        const bool has_long_form = row.encoding == Encoding::Vop2 ||
                                   row.encoding == Encoding::Vop1 || row.encoding == Encoding::Vopc;
        const bool fits = row.encoding == encoding || (encoding == Encoding::Vop3 && has_long_form);
        if (fits && name == row.name) return true;
    }
    return false;
}

TEST(Encoding, EveryOpcodeThatLlvmKnowsIsARowOrIsRefusedForAReason) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    std::vector<Words> all;
    std::vector<Encoding> encodings;
    for (const Numbers& numbers : kNumbers)
        for (std::uint32_t code = 0; code < numbers.end; ++code)
            for (const std::uint32_t first : kFirstWords)
                for (const std::uint32_t second : kSecondWords) {
                    const std::uint32_t word = numbers.prefix | put(numbers.op, code);
                    const std::uint32_t free = ~put(numbers.op, (1u << numbers.op.count) - 1);
                    if (numbers.encoding == Encoding::Vop3p && first > 4) continue;
                    all.push_back({word | (first & free), second});
                    encodings.push_back(numbers.encoding);
                }
    const auto texts = llvm_texts(all);
    std::set<std::pair<Encoding, std::string>> known;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (texts[i].is_accepted) known.insert({encodings[i], texts[i].base_name()});
    EXPECT_GT(known.size(), kOpCount);
    std::set<std::string> refused;
    for (const auto& [encoding, name] : known) {
        if (is_row(encoding, name)) continue;
        EXPECT_TRUE(is_refused_by_name(name))
            << name << " is in no row of encoding " << static_cast<int>(encoding)
            << " and in none of ops/refused.def";
        refused.insert(name);
    }
    for (const Refusal& refusal : kRefusals) {
        EXPECT_TRUE(refused.contains(refusal.name)) << refusal.name << ": LLVM does not know it";
        EXPECT_FALSE(is_row(refusal.encoding, refusal.name)) << refusal.name;
    }
}

TEST(Encoding, TooFewWordsAreIllegalAndNotReadPastTheEnd) {
    EXPECT_EQ(decode({}).op, Op::Illegal);
    for (std::size_t i = 0; i < kOpCount; ++i) {
        const Words words = words_for(info(static_cast<Op>(i)));
        if (words.size() < 2) continue;
        EXPECT_EQ(decode(std::span(words).first(1)).op, Op::Illegal)
            << info(static_cast<Op>(i)).name;
    }
}

TEST(Encoding, OperandsOverTheEndOfAFileAreIllegal) {
    EXPECT_EQ(decode(Words{0x7e0433fe}).op, Op::v_rndne_f64);  // of v[254:255]
    EXPECT_EQ(decode(Words{0x7e0433ff}).op, Op::Illegal);      // of v[255:256]
    EXPECT_EQ(decode(Words{0xbefe0104}).op, Op::s_mov_b64);    // to exec
}

TEST(Encoding, ScalarPairsBeginAtEvenPlaces) {
    EXPECT_EQ(disassemble(decode(Words{0xbeff0105})), "s_mov_b64 exec, s[4:5]");
}

TEST(Encoding, ExponentOfHalfInSdwaIsPrintedAsLlvmPrintsIt) {
    EXPECT_EQ(disassemble(decode(Words{0x6697e0f9, 0xcc10e4eb})),
              "v_ldexp_f16_sdwa v75, -v235, sext(0.5) clamp div:2 dst_sel:WORD_0 "
              "dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:WORD_0");
}

TEST(Encoding, AllOperandsThatAskForALiteralGetTheSame) {
    EXPECT_EQ(disassemble(decode(Words{0x9992ffff, 0x8749bd6f})),
              "s_pack_lh_b32_b16 s18, 0x8749bd6f, 0x8749bd6f");
    EXPECT_EQ(disassemble(decode(Words{0x2e0000ff, 0x0047801d})),
              "v_madmk_f32 v0, 0x47801d, 0x47801d, v0");
    EXPECT_EQ(disassemble(decode(Words{0x49b468ff, 0xc2da826a})),
              "v_madmk_f16 v218, 0xc2da826a, 0xc2da826a, v52");
    EXPECT_EQ(disassemble(decode(Words{0x495e02ff, 0x84b30000})),
              "v_madmk_f16 v175, 0x84b30000, 0x84b30000, v1");
    EXPECT_EQ(disassemble(decode(Words{0x495e02ff, 0x0000ffff})),
              "v_madmk_f16 v175, 0xffff, 0xffff, v1");
    EXPECT_EQ(disassemble(decode(Words{0x495e02ff, 0xffffffff})),
              "v_madmk_f16 v175, -1, 0xffffffff, v1");
    EXPECT_EQ(disassemble(decode(Words{0x4a0c2eff, 0x53287986})),
              "v_madak_f16 v6, 0x7986, v23, 0x53287986");
    EXPECT_EQ(decode(Words{0x2e0000ff, 0x0047801d}).size, 8u);
}

TEST(Disassemble, NamesOperandsAndModifiers) {
    EXPECT_EQ(disassemble(decode(Words{0x02060201})), "v_add_f32_e32 v3, s1, v1");
    EXPECT_EQ(disassemble(decode(Words{0xd2030003, 0x20120901})), "v_mad_f16 v3, -v1, v4, s4");
    EXPECT_EQ(disassemble(decode(Words{0xbefe01c1})), "s_mov_b64 exec, -1");
    EXPECT_EQ(disassemble(decode(Words{0xbe8021ff, 4})), "s_or_saveexec_b64 s[0:1], 4");
    EXPECT_EQ(disassemble(decode(Words{0x000000f9, 0x0a8d26fb})),
              "v_cndmask_b32_sdwa v0, sext(src_vccz), sext(v0), vcc clamp dst_sel:DWORD "
              "dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2");
    EXPECT_EQ(disassemble(decode(Words{0xbfff0000})), "illegal 0xbfff0000 0x00000000");
}

}  // namespace
}  // namespace vgpu::softgpu::isa
