// SPDX-License-Identifier: MIT
//
// Host code of scalar operations. Scalar registers and SCC stay in the wave's state; rax, rcx and
// rdx are free.
#include "pf-driver/softgpu/isa/translate/emitter.h"

namespace vgpu::softgpu::isa {

namespace {

using Code = Xbyak::CodeGenerator;

/// The host registers of an operation's two sources, in the width of Reg. The first also holds the
/// result.
template <class Reg> struct Registers;
template <> struct Registers<Reg32> {
    static const Reg32& first(Code& h) { return h.eax; }
    static const Reg32& second(Code& h) { return h.ecx; }
};
template <> struct Registers<Reg64> {
    static const Reg64& first(Code& h) { return h.rax; }
    static const Reg64& second(Code& h) { return h.rcx; }
};

/// Writes code that loads both sources, computes the result in the first register and stores the
/// result. `write` writes the code that computes the result and, if the operation sets SCC, sets
/// SCC.
template <class Reg, class Write> bool emit_binary(Emitter& e, const Instruction& i, Write write) {
    if (!Emitter::is_scalar_readable(i.src[0]) || !Emitter::is_scalar_readable(i.src[1]))
        return false;
    const Reg& a = Registers<Reg>::first(e.c);
    const Reg& b = Registers<Reg>::second(e.c);
    e.load(a, i.src[0]);
    e.load(b, i.src[1]);
    write(e.c, a, b);
    e.store(i.dst, a);
    return true;
}

/// Like emit_binary(), but loads only 32 bits of the shift count, of which the host uses the low
/// five or six bits. SCC becomes 1 if the result is not 0, else 0.
template <class Reg, class Write> bool emit_shift(Emitter& e, const Instruction& i, Write write) {
    if (!Emitter::is_scalar_readable(i.src[0]) || !Emitter::is_scalar_readable(i.src[1]))
        return false;
    const Reg& a = Registers<Reg>::first(e.c);
    e.load(a, i.src[0]);
    e.load(e.c.ecx, i.src[1]);
    write(e.c, a, Registers<Reg>::second(e.c));
    e.c.test(a, a);
    e.c.setnz(e.scc());
    e.store(i.dst, a);
    return true;
}

/// Like emit_binary(), for operations with one source.
template <class Reg, class Write> bool emit_unary(Emitter& e, const Instruction& i, Write write) {
    if (!Emitter::is_scalar_readable(i.src[0])) return false;
    const Reg& a = Registers<Reg>::first(e.c);
    e.load(a, i.src[0]);
    write(e.c, a);
    e.store(i.dst, a);
    return true;
}

/// Writes code that compares two scalars; `write` then writes the code that sets SCC from the
/// host's flags.
template <class Reg, class Write> bool emit_compare(Emitter& e, const Instruction& i, Write write) {
    if (!Emitter::is_scalar_readable(i.src[0]) || !Emitter::is_scalar_readable(i.src[1]))
        return false;
    const Reg& a = Registers<Reg>::first(e.c);
    const Reg& b = Registers<Reg>::second(e.c);
    e.load(a, i.src[0]);
    e.load(b, i.src[1]);
    e.c.cmp(a, b);
    write(e.c);
    return true;
}

/// For S_CMPK, whose SDST field names a source. Writes code that compares this source with the
/// 16-bit constant, sign-extended or zero-extended; `write` then writes the code that sets SCC from
/// the host's flags.
template <class Write>
bool emit_compare_constant(Emitter& e, const Instruction& i, bool is_signed, Write write) {
    e.c.mov(e.c.eax, e.scalar32(i.dst));
    e.c.cmp(e.c.eax, is_signed ? static_cast<u32>(i.imm) : u32{static_cast<u16>(i.imm)});
    write(e.c);
    return true;
}

/// Writes code for S_*_SAVEEXEC: the destination receives the old EXEC, and EXEC the value that the
/// code of `write` computes. SCC becomes 1 if the new EXEC is not 0, else 0.
template <class Write> bool emit_save_exec(Emitter& e, const Instruction& i, Write write) {
    if (!Emitter::is_scalar_readable(i.src[0])) return false;
    constexpr u32 exec = static_cast<u32>(ScalarReg::Exec);
    e.load(e.c.rax, i.src[0]);
    e.c.mov(e.c.rdx, e.scalar64(exec));
    e.c.mov(e.c.rcx, e.c.rdx);
    write(e.c, e.c.rax, e.c.rcx);  // the new EXEC is in rax
    e.c.test(e.c.rax, e.c.rax);
    e.c.setnz(e.scc());
    e.store(i.dst, e.c.rdx);
    e.store(exec, e.c.rax);
    return true;
}

/// For s_nop and s_waitcnt, which need no code: a memory access of softgpu is complete before the
/// next instruction begins.
bool emit_nothing(Emitter&, const Instruction&) {
    return true;
}

#define SET(name) table[static_cast<std::size_t>(Op::name)]
#define TWO(name, reg, ...)                                                                    \
    SET(name) = [](Emitter& e, const Instruction& i) {                                         \
        return emit_binary<reg>(                                                               \
            e, i, [&](Code& h, const reg& a, [[maybe_unused]] const reg& b) { __VA_ARGS__; }); \
    }
#define LOGIC(name, ...)                                                 \
    TWO(name##_b32, Reg32, __VA_ARGS__; h.test(a, a); h.setnz(e.scc())); \
    TWO(name##_b64, Reg64, __VA_ARGS__; h.test(a, a); h.setnz(e.scc()))
#define SHIFT(name, reg, ...)                                                                    \
    SET(name) = [](Emitter& e, const Instruction& i) {                                           \
        return emit_shift<reg>(e, i, [&](Code& h, const reg& a, const reg& b) { __VA_ARGS__; }); \
    }
#define ONE(name, reg, ...)                                                                       \
    SET(name) = [](Emitter& e, const Instruction& i) {                                            \
        return emit_unary<reg>(                                                                   \
            e, i, [&]([[maybe_unused]] Code& h, [[maybe_unused]] const reg& a) { __VA_ARGS__; }); \
    }
#define TEST(name, reg, set)                                              \
    SET(name) = [](Emitter& e, const Instruction& i) {                    \
        return emit_compare<reg>(e, i, [&](Code& h) { h.set(e.scc()); }); \
    }
#define TEST_CONSTANT(name, is_signed, set)                                              \
    SET(name) = [](Emitter& e, const Instruction& i) {                                   \
        return emit_compare_constant(e, i, is_signed, [&](Code& h) { h.set(e.scc()); }); \
    }
#define SAVE_EXEC(name, ...)                                                                     \
    SET(name) = [](Emitter& e, const Instruction& i) {                                           \
        return emit_save_exec(e, i,                                                              \
                              [&](Code& h, const Reg64& a, const Reg64& exec) { __VA_ARGS__; }); \
    }

void fill_arithmetic(EmitTable& table) {
    TWO(s_add_u32, Reg32, h.add(a, b); h.setc(e.scc()));
    TWO(s_sub_u32, Reg32, h.sub(a, b); h.setc(e.scc()));
    TWO(s_add_i32, Reg32, h.add(a, b); h.seto(e.scc()));
    TWO(s_sub_i32, Reg32, h.sub(a, b); h.seto(e.scc()));
    TWO(s_addc_u32, Reg32, e.carry_from_scc(); h.adc(a, b); h.setc(e.scc()));
    TWO(s_subb_u32, Reg32, e.carry_from_scc(); h.sbb(a, b); h.setc(e.scc()));
    TWO(s_mul_i32, Reg32, h.imul(a, b));
    TWO(s_cselect_b32, Reg32, h.cmp(e.scc(), 0); h.cmovz(a, b));
    TWO(s_cselect_b64, Reg64, h.cmp(e.scc(), 0); h.cmovz(a, b));
    TWO(s_min_i32, Reg32, h.cmp(a, b); h.setl(e.scc()); h.cmovg(a, b));
    TWO(s_min_u32, Reg32, h.cmp(a, b); h.setb(e.scc()); h.cmova(a, b));
    TWO(s_max_i32, Reg32, h.cmp(a, b); h.setg(e.scc()); h.cmovl(a, b));
    TWO(s_max_u32, Reg32, h.cmp(a, b); h.seta(e.scc()); h.cmovb(a, b));
    LOGIC(s_and, h.and_(a, b));
    LOGIC(s_or, h.or_(a, b));
    LOGIC(s_xor, h.xor_(a, b));
    LOGIC(s_andn2, h.not_(b); h.and_(a, b));
    LOGIC(s_orn2, h.not_(b); h.or_(a, b));
    LOGIC(s_nand, h.and_(a, b); h.not_(a));
    LOGIC(s_nor, h.or_(a, b); h.not_(a));
    LOGIC(s_xnor, h.xor_(a, b); h.not_(a));
    SHIFT(s_lshl_b32, Reg32, h.shlx(a, a, b));
    SHIFT(s_lshl_b64, Reg64, h.shlx(a, a, b));
    SHIFT(s_lshr_b32, Reg32, h.shrx(a, a, b));
    SHIFT(s_lshr_b64, Reg64, h.shrx(a, a, b));
    SHIFT(s_ashr_i32, Reg32, h.sarx(a, a, b));
    SHIFT(s_ashr_i64, Reg64, h.sarx(a, a, b));
}

void fill_single(EmitTable& table) {
    ONE(s_mov_b32, Reg32, );
    ONE(s_mov_b64, Reg64, );
    ONE(s_not_b32, Reg32, h.not_(a); h.test(a, a); h.setnz(e.scc()));
    ONE(s_not_b64, Reg64, h.not_(a); h.test(a, a); h.setnz(e.scc()));
    ONE(s_sext_i32_i8, Reg32, h.movsx(a, h.al));
    ONE(s_sext_i32_i16, Reg32, h.movsx(a, h.ax));
    SAVE_EXEC(s_and_saveexec_b64, h.and_(a, exec));
    SAVE_EXEC(s_or_saveexec_b64, h.or_(a, exec));
    SAVE_EXEC(s_xor_saveexec_b64, h.xor_(a, exec));
    SAVE_EXEC(s_andn2_saveexec_b64, h.not_(exec); h.and_(a, exec));
    SET(s_movk_i32) = [](Emitter& e, const Instruction& i) {
        e.c.mov(e.c.eax, static_cast<u32>(i.imm));
        e.store(i.dst, e.c.eax);
        return true;
    };
    SET(s_addk_i32) = [](Emitter& e, const Instruction& i) {
        e.c.mov(e.c.eax, e.scalar32(i.dst));
        e.c.add(e.c.eax, static_cast<u32>(i.imm));
        e.c.seto(e.scc());
        e.store(i.dst, e.c.eax);
        return true;
    };
    SET(s_mulk_i32) = [](Emitter& e, const Instruction& i) {
        e.c.imul(e.c.eax, e.scalar32(i.dst), i.imm);
        e.store(i.dst, e.c.eax);
        return true;
    };
    SET(s_nop) = emit_nothing;
    SET(s_waitcnt) = emit_nothing;
}

void fill_tests(EmitTable& table) {
    TEST(s_cmp_eq_i32, Reg32, sete);
    TEST(s_cmp_lg_i32, Reg32, setne);
    TEST(s_cmp_gt_i32, Reg32, setg);
    TEST(s_cmp_ge_i32, Reg32, setge);
    TEST(s_cmp_lt_i32, Reg32, setl);
    TEST(s_cmp_le_i32, Reg32, setle);
    TEST(s_cmp_eq_u32, Reg32, sete);
    TEST(s_cmp_lg_u32, Reg32, setne);
    TEST(s_cmp_gt_u32, Reg32, seta);
    TEST(s_cmp_ge_u32, Reg32, setae);
    TEST(s_cmp_lt_u32, Reg32, setb);
    TEST(s_cmp_le_u32, Reg32, setbe);
    TEST(s_cmp_eq_u64, Reg64, sete);
    TEST(s_cmp_lg_u64, Reg64, setne);
    TEST_CONSTANT(s_cmpk_eq_i32, true, sete);
    TEST_CONSTANT(s_cmpk_lg_i32, true, setne);
    TEST_CONSTANT(s_cmpk_gt_i32, true, setg);
    TEST_CONSTANT(s_cmpk_ge_i32, true, setge);
    TEST_CONSTANT(s_cmpk_lt_i32, true, setl);
    TEST_CONSTANT(s_cmpk_le_i32, true, setle);
    TEST_CONSTANT(s_cmpk_eq_u32, false, sete);
    TEST_CONSTANT(s_cmpk_lg_u32, false, setne);
    TEST_CONSTANT(s_cmpk_gt_u32, false, seta);
    TEST_CONSTANT(s_cmpk_ge_u32, false, setae);
    TEST_CONSTANT(s_cmpk_lt_u32, false, setb);
    TEST_CONSTANT(s_cmpk_le_u32, false, setbe);
}

}  // namespace

void fill_scalar_rows(EmitTable& table) {
    fill_arithmetic(table);
    fill_single(table);
    fill_tests(table);
}

}  // namespace vgpu::softgpu::isa
