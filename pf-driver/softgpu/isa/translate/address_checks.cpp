// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/translate/address_checks.h"

#include <algorithm>
#include <array>
#include <bit>

namespace vgpu::softgpu::isa {

namespace {

using mem::Port;

constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;
constexpr u32 kPageBytes = Port::kPageBytes, kPageShift = std::countr_zero(kPageBytes);
static_assert(std::has_single_bit(sizeof(Port::Entry)));
constexpr u32 kEntryShift = std::countr_zero(sizeof(Port::Entry));

/// Predicates of VPCMPUD, which compares unsigned integers (Intel SDM).
constexpr std::uint8_t kDifferent = 4, kGreater = 6;
/// Variables below the stack pointer, as distances from it in bytes: one word, and the bases of the
/// four quarters.
constexpr std::size_t kSpillWord = 8, kSpillBases = 48;
/// Truth table of VPTERNLOG: a | (b ^ c).
constexpr std::uint8_t kOrDifference = 0xf6;

#define VGPU_FRAME(name) c.qword[c.rbx + static_cast<std::size_t>(offsetof(Frame, name))]
#define VGPU_ENTRY(size, name) \
    c.size[c.rax + static_cast<std::size_t>(offsetof(mem::Port::Entry, name))]

using Steps = std::array<u32, kLanes>;

/// by_step[step][lane] is the distance in bytes of the lane from lane 0, if neighbouring lanes are
/// `step` bytes apart.
struct alignas(64) StepTable {
    std::array<Steps, AddressChecks::kMaxStep + 1> by_step;
};

constexpr StepTable kSteps = [] {
    StepTable out{};
    for (u32 step = 0; step <= AddressChecks::kMaxStep; ++step)
        for (u32 lane = 0; lane < kLanes; ++lane) out.by_step[step][lane] = lane * step;
    return out;
}();

/// Writes code that computes the range of low words for which a lane's access lies wholly in the
/// page that one given lane accesses. A low word is the low half of a lane's 64-bit address
/// register, or the lane's 32-bit offset from a scalar base. In: rax is the full address of the
/// given lane, rsi that lane's low word, `last` the largest offset in a page at which the access
/// fits. Out: the range is r10d to r10d + r8d; rdx is the low word of the start of the page, and
/// may be negative. Jumps to `none` if the given lane's access crosses the end of the page, or if
/// low words wrap around inside the page.
void write_find_low_words(Xbyak::CodeGenerator& c, const Reg32& last, Xbyak::Label& none) {
    constexpr u8 word_bits = 32;
    c.mov(c.edx, c.eax);
    c.and_(c.edx, kPageBytes - 1);
    c.cmp(c.edx, last);
    c.ja(none, kNear);
    c.neg(c.rdx);
    c.add(c.rdx, c.rsi);
    c.lea(c.r8, c.ptr[c.rdx + last.cvt64()]);  // r8 >= rsi, so r8 is not negative
    c.mov(c.r9, c.r8);
    c.shr(c.r9, word_bits);  // not 0: low words wrap inside the page
    c.jnz(none, kNear);
    c.xor_(c.r10d, c.r10d);
    c.test(c.rdx, c.rdx);
    c.cmovns(c.r10, c.rdx);
    c.sub(c.r8, c.r10);
}

/// Writes code that looks up the page of the address in rax, like Port::at(), but jumps to `none`
/// on a miss. `access` is the required permission, a constant or a register. Out: r11 is the host
/// address of the page.
template <class Access>
void write_find_page(Xbyak::CodeGenerator& c, const Access& access, Xbyak::Label& none) {
    c.shr(c.rax, kPageShift);
    c.mov(c.r9, c.rax);
    c.and_(c.eax, static_cast<u32>(Port::kEntries - 1));
    c.shl(c.eax, kEntryShift);
    c.add(c.rax, VGPU_FRAME(pages));
    c.cmp(VGPU_ENTRY(qword, page), c.r9);
    c.jne(none, kNear);
    c.test(VGPU_ENTRY(byte, access), access);
    c.jz(none, kNear);
    c.mov(c.r9, VGPU_FRAME(page_epoch));
    c.mov(c.r9, c.qword[c.r9]);
    c.cmp(VGPU_ENTRY(qword, epoch), c.r9);
    c.jne(none, kNear);
    c.mov(c.r11, VGPU_ENTRY(qword, host));
}

}  // namespace

// ---- one page

void AddressChecks::write_page_check(const Instruction& i, u32 bytes, mem::Access access) {
    const bool may_spread = !e_.is_masked() && info(i.op).encoding != Encoding::Flat;
    Xbyak::Label spread, join;
    if (may_spread) other_ = &spread;
    in_one_page(i, bytes, access);
    other_ = &paths_.slow;
    share_base();
    if (!may_spread) return;
    c.jmp(join, kNear);
    c.L(spread);
    write_pages_check(i, bytes, access);
    c.L(join);
}

void AddressChecks::in_one_page(const Instruction& i, u32 bytes, mem::Access access) {
    const u32 low = i.src[0].value;
    const bool has_high = i.src[2].kind != OperandKind::Scalar;
    const Zmm start(28), temporary(29);
    e_.find_first_lane(paths_.done);
    load_address(i);
    if (info(i.op).encoding == Encoding::Flat) check_outside_windows();
    c.mov(c.ebp, kPageBytes - bytes);
    write_find_low_words(c, c.ebp, *other_);
    write_find_page(c, static_cast<u8>(access), *other_);
    c.sub(c.r11, c.rdx);
    c.add(c.r11, c.r10);  // r11: host address for the low word r10d
    c.mov(c.edi, c.esi);
    c.sub(c.edi, c.r10d);
    c.vpbroadcastd(start, c.r10d);
    for (unsigned q = 0; q < kQuarters; ++q)
        c.vpsubd(index(q), e_.quarter(low, q, temporary), start);
    check_indices(has_high, low + 1);
}

/// Out: rax is the address of the first lane that is on, and esi that lane's low word
/// (write_find_low_words()). If the instruction has 64-bit vector addresses, zmm30 is the high word
/// that all lanes must have: lanes in one page differ only in their low words.
void AddressChecks::load_address(const Instruction& i) {
    constexpr u8 word_bits = 32;
    e_.load_found_lane(c.esi, i.src[0].value);
    if (i.src[2].kind == OperandKind::Scalar) {
        c.mov(c.rax, e_.scalar64(i.src[2].value));
    } else {
        e_.load_found_lane(c.eax, i.src[0].value + 1);
        c.vpbroadcastd(Zmm(30), c.eax);
        c.shl(c.rax, word_bits);
    }
    if (i.imm != 0) c.add(c.rax, static_cast<u32>(i.imm));
    c.add(c.rax, c.rsi);
}

/// Checks that the flat address in rax is in neither window (LDS, scratch). The address of one lane
/// suffices: a window is an aligned range of 4 GiB, so a page is inside or outside as a whole.
void AddressChecks::check_outside_windows() {
    constexpr u8 word_bits = 32;
    c.mov(c.rdx, c.rax);
    c.shr(c.rdx, word_bits);
    c.cmp(c.rdx, VGPU_FRAME(shared_window));
    c.je(*other_, kNear);
    c.cmp(c.rdx, VGPU_FRAME(private_window));
    c.je(*other_, kNear);
}

void AddressChecks::write_scalar_page_check(u32 bytes) {
    constexpr u32 word_bytes = 4;
    c.mov(c.edx, c.eax);
    c.and_(c.edx, kPageBytes - word_bytes);
    c.cmp(c.edx, kPageBytes - bytes);
    c.ja(paths_.slow, kNear);
    write_find_page(c, static_cast<u8>(mem::Access::Read), paths_.slow);
}

// ---- a page for each quarter

namespace {

/// Writes the code of write_find_pages() for quarter q. zmm(24 + q) holds the low words of the
/// quarter's addresses, zmm(28 + q) the high words.
void find_page_of_quarter(Xbyak::CodeGenerator& c, unsigned q, Xbyak::Label& none) {
    constexpr u8 word_bits = 32;
    const Zmm low(24 + static_cast<int>(q)), high(28 + static_cast<int>(q));
    c.vmovd(c.esi, Xbyak::Xmm(low.getIdx()));
    c.vmovd(c.eax, Xbyak::Xmm(high.getIdx()));
    c.mov(c.dword[c.rsp - kSpillWord], c.eax);
    c.vpcmpud(c.k5, high, c.ptr_b[c.rsp - kSpillWord], kDifferent);
    c.shl(c.rax, word_bits);
    c.add(c.rax, c.rdi);
    c.add(c.rax, c.rsi);
    write_find_low_words(c, c.ebp, none);
    write_find_page(c, c.cl, none);
    c.sub(c.r11, c.rdx);
    c.add(c.r11, c.r10);
    c.mov(c.qword[c.rsp - kSpillBases + std::size_t{q} * sizeof(u64)], c.r11);
    c.mov(c.dword[c.rsp - kSpillWord], c.r10d);
    c.vpsubd(low, low, c.ptr_b[c.rsp - kSpillWord]);
    c.mov(c.dword[c.rsp - kSpillWord], c.r8d);
    c.vpcmpud(c.k6, low, c.ptr_b[c.rsp - kSpillWord], kGreater);
    c.korw(c.k5, c.k5, c.k6);
    c.kortestw(c.k5, c.k5);
    c.jnz(none, kNear);
}

}  // namespace

/// In: see find_page_of_quarter() and write_pages_check(). Out: rcx, rdi, rbp and r11 are the bases
/// of the quarters, zmm24 to zmm27 the distances of their lanes. Sets the carry flag if the lanes
/// of a quarter are not in one page, or if the port has no valid cached translation of a page that
/// permits the access. The routine makes no calls, so it may use the red zone of the stack.
void write_find_pages(Xbyak::CodeGenerator& c) {
    Xbyak::Label none;
    for (unsigned q = 0; q < kQuarters; ++q) find_page_of_quarter(c, q, none);
    const std::array bases{c.rcx, c.rdi, c.rbp, c.r11};
    for (unsigned q = 0; q < kQuarters; ++q)
        c.mov(bases[q], c.qword[c.rsp - kSpillBases + std::size_t{q} * sizeof(u64)]);
    c.clc();
    c.ret();
    c.L(none);
    c.stc();
    c.ret();
}

/// Calls the routine of write_find_pages(), which adds rdi to all addresses. ebp is the largest
/// offset in a page at which the access fits, cl the required permission. Even for bytes and
/// halves, write_pages_check() requires that a whole word fits. So a later write_tail_check() has
/// nothing to check: r8d is set so large that write_tail_check() always succeeds.
void AddressChecks::write_pages_check(const Instruction& i, u32 bytes, mem::Access access) {
    const bool has_base = i.src[2].kind == OperandKind::Scalar;
    constexpr int first_high = 28;
    for (unsigned q = 0; q < kQuarters; ++q) {
        const Zmm high(first_high + static_cast<int>(q));
        copy_quarter(index(q), i.src[0].value, q);
        if (has_base)
            c.vpxord(high, high, high);
        else
            copy_quarter(high, i.src[0].value + 1, q);
    }
    if (has_base) {
        c.mov(c.rdi, e_.scalar64(i.src[2].value));
        c.add(c.rdi, static_cast<u32>(i.imm));
    } else {
        c.mov(c.rdi, static_cast<u64>(std::int64_t{i.imm}));
    }
    c.mov(c.ebp, kPageBytes - std::max(bytes, u32{sizeof(u32)}));
    c.mov(c.cl, static_cast<u8>(access));
    c.mov(c.rax, std::bit_cast<std::uintptr_t>(e_.find_pages()));
    c.call(c.rax);
    c.jc(paths_.slow, kNear);
    c.mov(c.r8d, 2 * kPageBytes);
}

void AddressChecks::copy_quarter(const Zmm& to, u32 row, unsigned quarter) {
    const Zmm from = e_.quarter(row, quarter, to);
    if (from.getIdx() != to.getIdx()) c.vmovdqa32(to, from);
}

/// Makes the address in r11 the base of all quarters.
void AddressChecks::share_base() {
    if (e_.is_masked()) return;
    for (const Reg64& base : {c.rcx, c.rdi, c.rbp}) c.mov(base, c.r11);
}

// ---- LDS

/// An address plus its offset may wrap around to a valid address. These checks refuse such a lane,
/// and the slow path executes the access.
void AddressChecks::write_lds_check(u32 row, u32 reach) {
    e_.find_first_lane(paths_.done);
    c.mov(c.r8, VGPU_FRAME(lds_bytes));
    c.sub(c.r8, reach);
    c.jc(paths_.slow, kNear);
    c.mov(c.r11, VGPU_FRAME(lds));
    e_.load_found_lane(c.edi, row);
    for (unsigned q = 0; q < kQuarters; ++q) copy_quarter(index(q), row, q);
    check_indices(false, 0);
    share_base();
}

// ---- checks

/// Checks that the distances of all active lanes are at most r8d and, if `has_high`, that the high
/// words of their addresses equal those in zmm30.
void AddressChecks::check_indices(bool has_high, u32 high_row) {
    const Zmm limit(28), temporary(29), high(30), all(31);
    c.vpbroadcastd(limit, c.r8d);
    if (e_.is_masked())
        c.vmovdqa32(e_.zero_masked(all, 0), index(0));
    else
        c.vpmaxud(all, index(0), index(1));
    for (unsigned q = e_.is_masked() ? 1 : 2; q < kQuarters; ++q)
        c.vpmaxud(e_.merge_masked(all, q), all, index(q));
    c.vpcmpud(c.k5, all, limit, kGreater);
    for (unsigned q = 0; has_high && q < kQuarters; ++q) {
        const Zmm from = e_.quarter(high_row, q, temporary);
        if (q == 0)
            c.vpxord(e_.zero_masked(all, q), from, high);
        else
            c.vpternlogd(e_.merge_masked(all, q), from, high, kOrDifference);
    }
    if (has_high) {
        c.vptestmd(c.k6, all, all);
        c.korw(c.k5, c.k5, c.k6);
    }
    c.kortestw(c.k5, c.k5);
    c.jnz(*other_, kNear);
}

void AddressChecks::write_tail_check(u32 bytes) {
    c.sub(c.r8d, bytes);
    c.jc(paths_.slow, kNear);
    check_indices(false, 0);
}

// ---- patterns

/// ORs into zmm30 the bits in which a quarter's distances differ from `from`. Quarter 0 sets zmm30.
void AddressChecks::collect_differences(unsigned quarter, const Zmm& from) {
    const Zmm all(30);
    if (quarter == 0)
        c.vpxord(e_.zero_masked(all, quarter), index(quarter), from);
    else
        c.vpternlogd(e_.merge_masked(all, quarter), index(quarter), from, kOrDifference);
}

void AddressChecks::jump_if_different(Xbyak::Label& other) {
    c.vptestmd(c.k5, Zmm(30), Zmm(30));
    c.kortestw(c.k5, c.k5);
    c.jnz(other, kNear);
    load_firsts();
}

/// If no lane can be off, loads the host address of the first lane of each quarter into rdx, rsi,
/// r9 and r10. Otherwise loads into rsi the host address that lane 0 has in the pattern, even if
/// lane 0 is off.
void AddressChecks::load_firsts() {
    if (e_.is_masked()) {
        c.movsxd(c.rsi, c.esi);
        c.add(c.rsi, c.r11);
        return;
    }
    const std::array firsts{c.rdx, c.rsi, c.r9, c.r10};
    for (unsigned q = 0; q < kQuarters; ++q) {
        c.vmovd(firsts[q].cvt32(), Xbyak::Xmm(index(q).getIdx()));
        c.add(firsts[q], base(q));
    }
}

Reg64 AddressChecks::base(unsigned quarter) const {
    const std::array bases{c.rcx, c.rdi, c.rbp, c.r11};
    return e_.is_masked() ? c.r11 : bases[quarter];
}

Xbyak::RegExp AddressChecks::first_lane_operand(unsigned quarter, u32 offset) const {
    const std::array firsts{c.rdx, c.rsi, c.r9, c.r10};
    if (e_.is_masked()) return c.rsi + (quarter * kQuarterLanes * step_ + offset);
    return firsts[quarter] + offset;
}

void AddressChecks::write_run_check(u32 step, Xbyak::Label& other) {
    const Zmm first(28), wanted(29);
    step_ = step;
    c.mov(c.rax, std::bit_cast<std::uintptr_t>(&kSteps.by_step[step]));
    if (e_.is_masked()) {  // esi: the distance that lane 0 has in the pattern; may be negative
        c.imul(c.edx, c.ecx, static_cast<int>(step));
        c.mov(c.esi, c.edi);
        c.sub(c.esi, c.edx);
        c.vpbroadcastd(first, c.esi);
    }
    for (unsigned q = 0; q < kQuarters; ++q) {
        if (!e_.is_masked()) c.vpbroadcastd(first, Xbyak::Xmm(index(q).getIdx()));
        const std::size_t row_offset =
            e_.is_masked() ? std::size_t{q} * sizeof(u32) * kQuarterLanes : 0;
        c.vpaddd(wanted, first, c.zword[c.rax + row_offset]);
        collect_differences(q, wanted);
    }
    jump_if_different(other);
}

void AddressChecks::write_same_check(Xbyak::Label& other) {
    const Zmm first(28);
    step_ = 0;
    if (e_.is_masked()) {
        c.mov(c.esi, c.edi);
        c.vpbroadcastd(first, c.esi);
    }
    for (unsigned q = 0; q < kQuarters; ++q) {
        if (!e_.is_masked()) c.vpbroadcastd(first, Xbyak::Xmm(index(q).getIdx()));
        collect_differences(q, first);
    }
    jump_if_different(other);
}

}  // namespace vgpu::softgpu::isa
