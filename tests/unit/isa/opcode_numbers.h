// SPDX-License-Identifier: MIT
//
// What the tests against LLVM's disassembler share: where each encoding has its opcode and how many
// numbers there are, which opcodes are refused (ops/refused.def), and which are printed in words.
// Included by encoding_test (every number) and random_words_test (everything else).
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "pf-driver/softgpu/isa/encoding.h"
#include "pf-driver/softgpu/isa/instruction.h"

namespace vgpu::softgpu::isa::test_numbers {

inline std::uint32_t put(enc::Field field, std::uint32_t value) {
    return value << field.first;
}

/// Operations whose constant LLVM prints in words; there, only the mnemonic is compared.
inline bool has_symbols(const std::string& name) {
    static const std::set<std::string> kNames{
        "s_waitcnt",        "s_sendmsg",          "s_sendmsghalt",
        "s_getreg_b32",     "s_setreg_b32",       "s_setreg_imm32_b32",
        "s_set_gpr_idx_on", "s_set_gpr_idx_mode", "ds_swizzle_b32"};
    return kNames.contains(name);
}

struct Refusal {
    const char* name;
    Encoding encoding;
    std::uint32_t code;
    const char* reason;
};
inline constexpr Refusal kRefusals[] = {
#define R(name, encoding, code, reason) {#name, Encoding::encoding, code, reason},
#define RX(...)
#include "pf-driver/softgpu/isa/ops/refused.def"
#undef R
#undef RX
};
struct RefusedEncoding {
    const char* name;
    std::uint32_t mask;
    std::uint32_t value;
};
inline constexpr RefusedEncoding kRefusedEncodings[] = {
#define R(...)
#define RX(name, mask, value, reason) {#name, mask, value},
#include "pf-driver/softgpu/isa/ops/refused.def"
#undef R
#undef RX
};

inline bool is_refused_by_name(const std::string& name) {
    const auto same = [&](const Refusal& refusal) { return name == refusal.name; };
    return std::ranges::any_of(kRefusals, same);
}
inline bool is_refused_encoding(std::uint32_t word) {
    return std::ranges::any_of(kRefusedEncodings, [&](const RefusedEncoding& refused) {
        return (word & refused.mask) == refused.value;
    });
}

/// Every opcode number of an encoding.
struct Numbers {
    Encoding encoding;
    std::uint32_t prefix;
    enc::Field op;
    std::uint32_t end;
};
inline constexpr Numbers kNumbers[] = {
    {Encoding::Sop2, enc::kSop2, enc::kSop2Op, 96},
    {Encoding::Sop1, enc::kSop1, enc::kSop1Op, 256},
    {Encoding::Sopc, enc::kSopc, enc::kSopcOp, 128},
    {Encoding::Sopk, enc::kSopk, enc::kSopkOp, 29},
    {Encoding::Sopp, enc::kSopp, enc::kSoppOp, 128},
    {Encoding::Smem, enc::kSmem, enc::kSmemOp, 256},
    {Encoding::Vop2, enc::kVop2, enc::kVop2Op, 62},
    {Encoding::Vop1, enc::kVop1, enc::kVop1Op, 256},
    {Encoding::Vopc, enc::kVopc, enc::kVopcOp, 256},
    {Encoding::Vop3, enc::kVop3, enc::kVop3Op, enc::kFirstVop3p},
    {Encoding::Vop3p, enc::kVop3 | enc::kFirstVop3p << 16, enc::kVop3pOp, 128},
    {Encoding::Ds, enc::kDs, enc::kDsOp, 256},
    {Encoding::Flat, enc::kFlat, enc::kFlatOp, 128},
    {Encoding::Scratch, enc::kFlat | 0x4000, enc::kFlatOp, 128},
    {Encoding::Global, enc::kFlat | 0x8000, enc::kFlatOp, 128},
    {Encoding::Mubuf, enc::kMubuf, enc::kMubufOp, 128},
    {Encoding::Mtbuf, enc::kMtbuf, enc::kMtbufOp, 16},
};

}  // namespace vgpu::softgpu::isa::test_numbers
