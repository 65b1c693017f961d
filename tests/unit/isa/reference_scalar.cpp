// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>

#include "tests/unit/isa/reference.h"

namespace vgpu::test {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

i64 s32(u64 x) {
    return static_cast<std::int32_t>(x);
}
i64 s64(u64 x) {
    return static_cast<i64>(x);
}
u64 low(u64 x) {
    return x & 0xffffffff;
}
u64 low(i64 x) {
    return static_cast<u32>(x);
}
u64 place_of(u64 x, bool wanted, unsigned bits, bool from_top) {
    for (unsigned i = 0; i < bits; ++i)
        if ((((x >> (from_top ? bits - 1 - i : i)) & 1) != 0) == wanted) return i;
    return 0xffffffff;
}
u64 reversed(u64 x, unsigned bits) {
    u64 out = 0;
    for (unsigned i = 0; i < bits; ++i) out |= ((x >> i) & 1) << (bits - 1 - i);
    return out;
}
u64 quads(u64 x, unsigned bits, bool whole) {
    u64 out = 0;
    for (unsigned i = 0; i < bits; i += 4)
        if (((x >> i) & 15) != 0) out |= whole ? u64{15} << i : u64{1} << (i / 4);
    return out;
}
u64 twice_each(u64 x) {
    u64 out = 0;
    for (unsigned i = 0; i < 32; ++i)
        if (((x >> i) & 1) != 0) out |= u64{3} << (2 * i);
    return out;
}
u64 mask_of(u64 count) {
    return count >= 64 ? ~u64{0} : (u64{1} << count) - 1;
}
u64 field(u64 x, u64 code, unsigned bits, bool is_signed) {
    const u64 first = code % bits;
    const u64 count = std::min<u64>((code >> 16) & 127, bits);
    if (!is_signed || count == 0) return (x >> first) & mask_of(count);
    // The manual shifts S0.i: above the register are copies of its sign.
    const i64 wide = bits == 32 ? s32(x) : s64(x);
    const u64 value = static_cast<u64>(wide >> first) & mask_of(count);
    const bool negative = ((value >> (count - 1)) & 1) != 0;
    return (negative ? value | ~mask_of(count) : value) & mask_of(bits);
}

#define VALUE(expression)                                     \
    [](const Operands& o) -> u64 {                            \
        [[maybe_unused]] const u64 a = o.a, b = o.b, c = o.c; \
        [[maybe_unused]] const u64 scc = o.scc;               \
        return static_cast<u64>(expression);                  \
    }
/// A result that sets SCC if it is not zero.
#define TESTED(expression) \
    { VALUE(expression), VALUE((expression) != 0) }

/// c is the old result.
constexpr std::pair<const char*, Reference> kRows[] = {
    {"s_add_u32", {VALUE(low(a + b)), VALUE((a + b) >> 32)}},
    {"s_sub_u32", {VALUE(low(a - b)), VALUE(a < b)}},
    {"s_add_i32", {VALUE(low(a + b)), VALUE(s32(a) + s32(b) != s32(a + b))}},
    {"s_sub_i32", {VALUE(low(a - b)), VALUE(s32(a) - s32(b) != s32(a - b))}},
    {"s_addc_u32", {VALUE(low(a + b + scc)), VALUE((a + b + scc) >> 32)}},
    {"s_subb_u32", {VALUE(low(a - b - scc)), VALUE(a < b + scc)}},
    {"s_min_i32", {VALUE(low(std::min(s32(a), s32(b)))), VALUE(s32(a) < s32(b))}},
    {"s_min_u32", {VALUE(std::min(a, b)), VALUE(a < b)}},
    {"s_max_i32", {VALUE(low(std::max(s32(a), s32(b)))), VALUE(s32(a) > s32(b))}},
    {"s_max_u32", {VALUE(std::max(a, b)), VALUE(a > b)}},
    {"s_cselect_b32", {VALUE(scc != 0 ? a : b)}},
    {"s_cselect_b64", {VALUE(scc != 0 ? a : b)}},
    {"s_and_b32", TESTED(a& b)},
    {"s_and_b64", TESTED(a& b)},
    {"s_or_b32", TESTED(a | b)},
    {"s_or_b64", TESTED(a | b)},
    {"s_xor_b32", TESTED(a ^ b)},
    {"s_xor_b64", TESTED(a ^ b)},
    {"s_andn2_b32", TESTED(a & ~b)},
    {"s_andn2_b64", TESTED(a & ~b)},
    {"s_orn2_b32", TESTED(low(a | ~b))},
    {"s_orn2_b64", TESTED(a | ~b)},
    {"s_nand_b32", TESTED(low(~(a& b)))},
    {"s_nand_b64", TESTED(~(a& b))},
    {"s_nor_b32", TESTED(low(~(a | b)))},
    {"s_nor_b64", TESTED(~(a | b))},
    {"s_xnor_b32", TESTED(low(~(a ^ b)))},
    {"s_xnor_b64", TESTED(~(a ^ b))},
    {"s_lshl_b32", TESTED(low(a << (b % 32)))},
    {"s_lshl_b64", TESTED(a << (b % 64))},
    {"s_lshr_b32", TESTED(a >> (b % 32))},
    {"s_lshr_b64", TESTED(a >> (b % 64))},
    {"s_ashr_i32", TESTED(low(s32(a) >> (b % 32)))},
    {"s_ashr_i64", TESTED(s64(a) >> (b % 64))},
    {"s_bfm_b32", {VALUE(low(mask_of(a % 32) << (b % 32)))}},
    {"s_bfm_b64", {VALUE(mask_of(a % 64) << (b % 64))}},
    {"s_mul_i32", {VALUE(low(a * b))}},
    {"s_bfe_u32", TESTED(field(a, b, 32, false))},
    {"s_bfe_i32", TESTED(field(a, b, 32, true))},
    {"s_bfe_u64", TESTED(field(a, b, 64, false))},
    {"s_bfe_i64", TESTED(field(a, b, 64, true))},
    {"s_absdiff_i32", TESTED(low(s32(a) > s32(b) ? a - b : b - a))},
    {"s_mul_hi_u32", {VALUE((a * b) >> 32)}},
    {"s_mul_hi_i32", {VALUE(low((s32(a) * s32(b)) >> 32))}},
    {"s_lshl1_add_u32", {VALUE(low(2 * a + b)), VALUE((2 * a + b) >> 32 != 0)}},
    {"s_lshl2_add_u32", {VALUE(low(4 * a + b)), VALUE((4 * a + b) >> 32 != 0)}},
    {"s_lshl3_add_u32", {VALUE(low(8 * a + b)), VALUE((8 * a + b) >> 32 != 0)}},
    {"s_lshl4_add_u32", {VALUE(low(16 * a + b)), VALUE((16 * a + b) >> 32 != 0)}},
    {"s_pack_ll_b32_b16", {VALUE((a & 0xffff) | low(b << 16))}},
    {"s_pack_lh_b32_b16", {VALUE((a & 0xffff) | (b & 0xffff0000))}},
    {"s_pack_hh_b32_b16", {VALUE((a >> 16) | (b & 0xffff0000))}},
    // one source
    {"s_mov_b32", {VALUE(a)}},
    {"s_mov_b64", {VALUE(a)}},
    {"s_cmov_b32", {VALUE(scc != 0 ? a : c)}},
    {"s_cmov_b64", {VALUE(scc != 0 ? a : c)}},
    {"s_not_b32", TESTED(low(~a))},
    {"s_not_b64", TESTED(~a)},
    {"s_wqm_b32", TESTED(quads(a, 32, true))},
    {"s_wqm_b64", TESTED(quads(a, 64, true))},
    {"s_brev_b32", {VALUE(reversed(a, 32))}},
    {"s_brev_b64", {VALUE(reversed(a, 64))}},
    {"s_bcnt0_i32_b32", TESTED(32 - std::popcount(a))},
    {"s_bcnt0_i32_b64", TESTED(64 - std::popcount(a))},
    {"s_bcnt1_i32_b32", TESTED(std::popcount(a))},
    {"s_bcnt1_i32_b64", TESTED(std::popcount(a))},
    {"s_ff0_i32_b32", {VALUE(place_of(a, false, 32, false))}},
    {"s_ff0_i32_b64", {VALUE(place_of(a, false, 64, false))}},
    {"s_ff1_i32_b32", {VALUE(place_of(a, true, 32, false))}},
    {"s_ff1_i32_b64", {VALUE(place_of(a, true, 64, false))}},
    {"s_flbit_i32_b32", {VALUE(place_of(a, true, 32, true))}},
    {"s_flbit_i32_b64", {VALUE(place_of(a, true, 64, true))}},
    {"s_flbit_i32", {VALUE(place_of(a, s32(a) >= 0, 32, true))}},
    {"s_flbit_i32_i64", {VALUE(place_of(a, s64(a) >= 0, 64, true))}},
    {"s_sext_i32_i8", {VALUE(low(i64{static_cast<std::int8_t>(a)}))}},
    {"s_sext_i32_i16", {VALUE(low(i64{static_cast<std::int16_t>(a)}))}},
    {"s_bitset0_b32", {VALUE(c & ~(u64{1} << (a % 32)))}},
    {"s_bitset0_b64", {VALUE(c & ~(u64{1} << (a % 64)))}},
    {"s_bitset1_b32", {VALUE(c | (u64{1} << (a % 32)))}},
    {"s_bitset1_b64", {VALUE(c | (u64{1} << (a % 64)))}},
    {"s_quadmask_b32", TESTED(quads(a, 32, false))},
    {"s_quadmask_b64", TESTED(quads(a, 64, false))},
    {"s_abs_i32", TESTED(low(s32(a) < 0 ? 0 - a : a))},
    {"s_bitreplicate_b64_b32", {VALUE(twice_each(a))}},
    // comparisons
    {"s_cmp_eq_i32", {nullptr, VALUE(a == b)}},
    {"s_cmp_lg_i32", {nullptr, VALUE(a != b)}},
    {"s_cmp_gt_i32", {nullptr, VALUE(s32(a) > s32(b))}},
    {"s_cmp_ge_i32", {nullptr, VALUE(s32(a) >= s32(b))}},
    {"s_cmp_lt_i32", {nullptr, VALUE(s32(a) < s32(b))}},
    {"s_cmp_le_i32", {nullptr, VALUE(s32(a) <= s32(b))}},
    {"s_cmp_eq_u32", {nullptr, VALUE(a == b)}},
    {"s_cmp_lg_u32", {nullptr, VALUE(a != b)}},
    {"s_cmp_gt_u32", {nullptr, VALUE(a > b)}},
    {"s_cmp_ge_u32", {nullptr, VALUE(a >= b)}},
    {"s_cmp_lt_u32", {nullptr, VALUE(a < b)}},
    {"s_cmp_le_u32", {nullptr, VALUE(a <= b)}},
    {"s_bitcmp0_b32", {nullptr, VALUE(((a >> (b % 32)) & 1) == 0)}},
    {"s_bitcmp1_b32", {nullptr, VALUE(((a >> (b % 32)) & 1) == 1)}},
    {"s_bitcmp0_b64", {nullptr, VALUE(((a >> (b % 64)) & 1) == 0)}},
    {"s_bitcmp1_b64", {nullptr, VALUE(((a >> (b % 64)) & 1) == 1)}},
    {"s_cmp_eq_u64", {nullptr, VALUE(a == b)}},
    {"s_cmp_lg_u64", {nullptr, VALUE(a != b)}},
    // with a constant: b is it, 16 bits wide; a is the old result
    {"s_movk_i32", {VALUE(low(i64{static_cast<std::int16_t>(b)}))}},
    {"s_cmovk_i32", {VALUE(scc != 0 ? low(i64{static_cast<std::int16_t>(b)}) : a)}},
    {"s_cmpk_eq_i32", {nullptr, VALUE(s32(a) == static_cast<std::int16_t>(b))}},
    {"s_cmpk_lg_i32", {nullptr, VALUE(s32(a) != static_cast<std::int16_t>(b))}},
    {"s_cmpk_gt_i32", {nullptr, VALUE(s32(a) > static_cast<std::int16_t>(b))}},
    {"s_cmpk_ge_i32", {nullptr, VALUE(s32(a) >= static_cast<std::int16_t>(b))}},
    {"s_cmpk_lt_i32", {nullptr, VALUE(s32(a) < static_cast<std::int16_t>(b))}},
    {"s_cmpk_le_i32", {nullptr, VALUE(s32(a) <= static_cast<std::int16_t>(b))}},
    {"s_cmpk_eq_u32", {nullptr, VALUE(a == b)}},
    {"s_cmpk_lg_u32", {nullptr, VALUE(a != b)}},
    {"s_cmpk_gt_u32", {nullptr, VALUE(a > b)}},
    {"s_cmpk_ge_u32", {nullptr, VALUE(a >= b)}},
    {"s_cmpk_lt_u32", {nullptr, VALUE(a < b)}},
    {"s_cmpk_le_u32", {nullptr, VALUE(a <= b)}},
    {"s_addk_i32",
     {VALUE(low(a + static_cast<u64>(i64{static_cast<std::int16_t>(b)}))),
      VALUE(s32(a) + static_cast<std::int16_t>(b) !=
            s32(a + static_cast<u64>(i64{static_cast<std::int16_t>(b)})))}},
    {"s_mulk_i32", {VALUE(low(s32(a) * static_cast<std::int16_t>(b)))}},
};

}  // namespace

const std::map<std::string, Reference>& scalar_references() {
    static const std::map<std::string, Reference> kTable(std::begin(kRows), std::end(kRows));
    return kTable;
}

const std::map<std::string, std::string>& rows_without_reference() {
    static constexpr std::pair<const char*, const char*> kRows[] = {
        {"v_nop", "no result"},
        {"v_clrexcp", "no result"},
        {"v_swap_b32", "two results: Reference.SwapExchangesTwoRegisters"},
        {"v_readfirstlane_b32", "reads one lane: Reference.LanesAreReadAndWrittenByNumber"},
        {"v_readlane_b32", "reads one lane: Reference.LanesAreReadAndWrittenByNumber"},
        {"v_writelane_b32", "writes one lane: Reference.LanesAreReadAndWrittenByNumber"},
        {"v_madmk_f32", "v_mad_f32 with a constant: Reference.MultiplyAddsTakeTheirConstant"},
        {"v_madak_f32", "v_mad_f32 with a constant: Reference.MultiplyAddsTakeTheirConstant"},
        {"v_madmk_f16", "v_mad_f16 with a constant: Reference.MultiplyAddsTakeTheirConstant"},
        {"v_madak_f16", "v_mad_f16 with a constant: Reference.MultiplyAddsTakeTheirConstant"},
        {"v_div_scale_f32",
         "a step of a division: Semantics.DivisionSequenceGivesTheRoundedQuotient"},
        {"v_div_scale_f64",
         "a step of a division: Semantics.DivisionSequenceGivesTheRoundedQuotient"},
        {"v_div_fmas_f32",
         "a step of a division: Semantics.DivisionSequenceGivesTheRoundedQuotient"},
        {"v_div_fmas_f64",
         "a step of a division: Semantics.DivisionSequenceGivesTheRoundedQuotient"},
        {"v_trig_preop_f64", "a table: Reference.TrigPreopGivesTheBitsOfTwoOverPi"},
        {"v_mqsad_u32_u8", "four results: Reference.MaskedQuadSadOfWords"},
    };
    static const std::map<std::string, std::string> kReasons(std::begin(kRows), std::end(kRows));
    return kReasons;
}

}  // namespace vgpu::test
