// SPDX-License-Identifier: MIT
//
// Host code of vector comparisons. Each row names the predicate of the host's comparison.
#include "pf-driver/softgpu/isa/translate/emitter.h"

namespace vgpu::softgpu::isa {

namespace {

using Xbyak::Opmask;

/// Predicates of the host's comparisons of integers and of floats (Intel SDM, VPCMPD, VCMPPS). The
/// predicates of floats are the quiet ones, which do not signal for a quiet NaN. If an operand is a
/// NaN, kFloatNe, kFloatNot*, kFloat*Unordered and kFloatTrue give true, the others false.
enum Integer : std::uint8_t { kEq, kLt, kLe, kFalse, kNe, kGe, kGt, kTrue };
enum Float : std::uint8_t {
    kFloatEq = 0,
    kFloatUnordered = 3,
    kFloatNe = 4,
    kFloatOrdered = 7,
    kFloatEqOrUnordered = 8,
    kFloatFalse = 0x0b,
    kFloatLessOrGreater = 0x0c,
    kFloatTrue = 0x0f,
    kFloatLt = 0x11,
    kFloatLe = 0x12,
    kFloatNotLt = 0x15,
    kFloatNotLe = 0x16,
    kFloatNotGe = 0x19,
    kFloatNotGt = 0x1a,
    kFloatGe = 0x1d,
    kFloatGt = 0x1e,
};

void compare_words(Emitter& e, Type type, const Opmask& k, const Zmm& a, const Zmm& b,
                   std::uint8_t predicate) {
    if (type == Type::i32)
        e.c.vpcmpd(k, a, b, predicate);
    else if (type == Type::u32)
        e.c.vpcmpud(k, a, b, predicate);
    else
        e.c.vcmpps(k, a, b, predicate);
}

void compare_pairs(Emitter& e, Type type, const Opmask& k, const Zmm& a, const Zmm& b,
                   std::uint8_t predicate) {
    if (type == Type::i64)
        e.c.vpcmpq(k, a, b, predicate);
    else if (type == Type::u64)
        e.c.vpcmpuq(k, a, b, predicate);
    else
        e.c.vcmppd(k, a, b, predicate);
}

bool is_pair(Type type) {
    return type == Type::i64 || type == Type::u64 || type == Type::f64;
}

/// Writes code that compares the 16 lanes of a quarter as two registers of eight 64-bit values. The
/// result is in k5.
void compare_wide_quarter(Emitter& e, Type type, unsigned quarter, std::uint8_t predicate) {
    constexpr int first = 24;
    const Zmm a0(first), a1(first + 1), b0(first + 2), b1(first + 3);
    e.wide_source(0, quarter, a0, a1);
    e.wide_source(1, quarter, b0, b1);
    compare_pairs(e, type, e.c.k5, a0, b0, predicate);
    compare_pairs(e, type, e.c.k6, a1, b1, predicate);
    e.join_masks(quarter, a0, a1);
}

/// Writes code that compares source 0 with source 1. The code stores a mask of the active lanes for
/// which the predicate is true: in the scalar pair `sdst` and, for V_CMPX, in EXEC.
template <std::uint8_t Predicate> bool compare(Emitter& e, const Instruction& i) {
    const OpInfo& row = info(i.op);
    const Type type = row.src[0];
    const bool is_wide = is_pair(type);
    if (is_wide ? !e.start_wide(i) : !e.start_compare(i)) return false;
    for (unsigned q = 0; q < kQuarters; ++q) {
        if (is_wide)
            compare_wide_quarter(e, type, q, Predicate);
        else
            compare_words(e, type, e.under_exec(e.c.k5, q), e.source(0, q), e.source(1, q),
                          Predicate);
        e.collect_mask(e.c.k5, q);
    }
    e.write_mask(i.sdst);
    if (row.trait == Trait::WritesExec) e.write_mask_again(static_cast<u32>(ScalarReg::Exec));
    return true;
}

#define ROW(name, predicate)                                                \
    table[static_cast<std::size_t>(Op::v_cmp_##name)] = compare<predicate>; \
    table[static_cast<std::size_t>(Op::v_cmpx_##name)] = compare<predicate>
#define INTEGER_ROWS(type) \
    ROW(f_##type, kFalse); \
    ROW(lt_##type, kLt);   \
    ROW(eq_##type, kEq);   \
    ROW(le_##type, kLe);   \
    ROW(gt_##type, kGt);   \
    ROW(ne_##type, kNe);   \
    ROW(ge_##type, kGe);   \
    ROW(t_##type, kTrue)
#define FLOAT_ROWS(type)                  \
    ROW(f_##type, kFloatFalse);           \
    ROW(lt_##type, kFloatLt);             \
    ROW(eq_##type, kFloatEq);             \
    ROW(le_##type, kFloatLe);             \
    ROW(gt_##type, kFloatGt);             \
    ROW(lg_##type, kFloatLessOrGreater);  \
    ROW(ge_##type, kFloatGe);             \
    ROW(o_##type, kFloatOrdered);         \
    ROW(u_##type, kFloatUnordered);       \
    ROW(nge_##type, kFloatNotGe);         \
    ROW(nlg_##type, kFloatEqOrUnordered); \
    ROW(ngt_##type, kFloatNotGt);         \
    ROW(nle_##type, kFloatNotLe);         \
    ROW(neq_##type, kFloatNe);            \
    ROW(nlt_##type, kFloatNotLt);         \
    ROW(tru_##type, kFloatTrue)

}  // namespace

void fill_compare_rows(EmitTable& table) {
    INTEGER_ROWS(i32);
    INTEGER_ROWS(u32);
    INTEGER_ROWS(i64);
    INTEGER_ROWS(u64);
    FLOAT_ROWS(f32);
    FLOAT_ROWS(f64);
}

}  // namespace vgpu::softgpu::isa
