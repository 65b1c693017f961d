// SPDX-License-Identifier: MIT
//
// Decoding against LLVM's disassembler: every row by its number, and random words.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/decode.h"
#include "pf-driver/softgpu/isa/disassemble.h"
#include "pf-driver/softgpu/isa/encoding.h"

namespace vgpu::softgpu::isa {
namespace {

using Words = std::vector<std::uint32_t>;

bool has_llvm_mc() {
    static const bool found = std::system("llvm-mc-14 --version >/dev/null 2>&1") == 0;
    return found;
}

std::string bytes_text(const Words& words) {
    std::ostringstream out;
    for (const std::uint32_t word : words)
        for (unsigned i = 0; i < 4; ++i) {
            char text[8];
            std::snprintf(text, sizeof text, "0x%02x ", (word >> (8 * i)) & 0xff);
            out << text;
        }
    return out.str();
}

/// "[0x01,0x02,0x03,0x04]" as dwords.
Words words_of(const std::string& encoding) {
    std::vector<std::uint32_t> bytes;
    for (std::size_t at = encoding.find("0x"); at != std::string::npos;
         at = encoding.find("0x", at + 2))
        bytes.push_back(
            static_cast<std::uint32_t>(std::stoul(encoding.substr(at, 4), nullptr, 16)));
    Words out(bytes.size() / 4);
    for (std::size_t i = 0; i < bytes.size(); ++i) out[i / 4] |= bytes[i] << (8 * (i % 4));
    return out;
}

/// Mnemonic without the suffix that names the encoding.
std::string base_name(std::string name) {
    for (const char* suffix : {"_e32", "_e64", "_sdwa", "_dpp"})
        if (name.ends_with(suffix)) name.resize(name.size() - std::string(suffix).size());
    return name;
}

/// What LLVM makes of each instruction: words to mnemonic. Words it refuses are missing.
std::map<Words, std::string> llvm_names(const std::vector<Words>& instructions) {
    const std::string in = testing::TempDir() + "isa_words.txt";
    const std::string out = testing::TempDir() + "isa_names.txt";
    {
        std::ofstream file(in);
        for (const Words& words : instructions) file << bytes_text(words) << "\n";
    }
    const std::string command =
        "llvm-mc-14 -arch=amdgcn -mcpu=gfx900 --disassemble --show-encoding " + in + " > " + out +
        " 2>/dev/null";
    // Words that LLVM refuses, or stumbles over, are simply missing from what it prints.
    [[maybe_unused]] const int status = std::system(command.c_str());
    std::map<Words, std::string> names;
    std::ifstream file(out);
    for (std::string line; std::getline(file, line);) {
        const std::size_t encoding = line.find("encoding: [");
        std::istringstream text(line);
        std::string name;
        text >> name;
        if (encoding != std::string::npos) names[words_of(line.substr(encoding))] = base_name(name);
    }
    return names;
}

std::uint32_t put(enc::Field field, std::uint32_t value) {
    return value << field.first;
}

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
    return {enc::kMubuf | put(enc::kMubufOp, row.code) | put(enc::kMubufOffen, 1),
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
            return {enc::kSop2 | put(enc::kSop2Op, row.code) | put(enc::kSdst, 8) |
                    put(enc::kSsrc0, 4) | put(enc::kSsrc1, 6)};
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
        case Encoding::Flat:
            return memory_words(row, enc::kFlat, enc::kFlatOp);
        case Encoding::Scratch:
            return memory_words(row, enc::kFlat | 0x4000, enc::kFlatOp);
        case Encoding::Global:
            return memory_words(row, enc::kFlat | 0x8000, enc::kFlatOp);
    }
    return {};
}

TEST(Encoding, EveryRowHasTheNameThatLlvmGivesItsNumber) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    std::vector<Words> all;
    for (std::size_t i = 0; i < kOpCount; ++i) all.push_back(words_for(info(static_cast<Op>(i))));
    const auto names = llvm_names(all);
    for (std::size_t i = 0; i < kOpCount; ++i) {
        const Op op = static_cast<Op>(i);
        const std::string name = info(op).name;
        const Instruction decoded = decode(all[i]);
        EXPECT_EQ(decoded.op, op) << name << " decoded as " << disassemble(decoded);
        EXPECT_EQ(decoded.size, all[i].size() * 4) << name;
        const auto found = names.find(all[i]);
        if (found == names.end())
            ADD_FAILURE() << name << ": LLVM refuses " << bytes_text(all[i]);
        else
            EXPECT_EQ(found->second, name);
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
    const auto names = llvm_names(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(decode(all[i]).op, ops[i]) << info(ops[i]).name;
        ASSERT_TRUE(names.contains(all[i])) << info(ops[i]).name << " " << bytes_text(all[i]);
        EXPECT_EQ(names.at(all[i]), info(ops[i]).name);
    }
}

TEST(Encoding, RandomWordsNeverGetAnotherNameThanLlvmGives) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    std::mt19937 generator(11);
    std::vector<Words> all;
    while (all.size() < 10000) {
        const Words pair{static_cast<std::uint32_t>(generator()),
                         static_cast<std::uint32_t>(generator())};
        const Instruction decoded = decode(pair);
        if (decoded.op != Op::Illegal)
            all.push_back(Words(pair.begin(), pair.begin() + decoded.size / 4));
    }
    constexpr std::size_t portion = 500;
    unsigned compared = 0;
    for (std::size_t first = 0; first < all.size(); first += portion) {
        const auto end =
            all.begin() + static_cast<std::ptrdiff_t>(std::min(first + portion, all.size()));
        const std::vector<Words> some(all.begin() + static_cast<std::ptrdiff_t>(first), end);
        const auto names = llvm_names(some);
        for (const Words& words : some) {
            const auto found = names.find(words);
            if (found == names.end()) continue;
            EXPECT_EQ(found->second, info(decode(words).op).name) << bytes_text(words);
            ++compared;
        }
    }
    EXPECT_GT(compared, 3000u);
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
    EXPECT_EQ(decode(Words{0xbeff0104}).op, Op::Illegal);      // to exec_hi and what is behind it
}

TEST(Disassemble, NamesOperandsAndModifiers) {
    EXPECT_EQ(disassemble(decode(Words{0x02060201})), "v_add_f32 v3, s1, v1");
    EXPECT_EQ(disassemble(decode(Words{0xd2030003, 0x20120901})), "v_mad_f16 v3, -v1, v4, s4");
    EXPECT_EQ(disassemble(decode(Words{0xbefe01c1})), "s_mov_b64 exec, -1");
    EXPECT_EQ(disassemble(decode(Words{0xbfff0000})), "illegal 0xbfff0000 0x00000000");
}

}  // namespace
}  // namespace vgpu::softgpu::isa
