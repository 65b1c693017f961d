// SPDX-License-Identifier: MIT
//
// Host code of loads and stores: global and flat memory, LDS, scalar memory. The rows of
// memory.def, ds.def and smem.def define what an operation moves. AddressChecks writes the checks
// of the addresses; if a check fails, the slow path calls the handler. Operations without a row in
// this file (for example scratch, buffers, atomics, scalar stores, stores of more than two words or
// to two addresses, loads into halves of registers) always call their handlers.
//
// A comment such as "loads X" on a function in this file means that the function writes host code
// that loads X.
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <type_traits>

#include "pf-driver/softgpu/isa/translate/address_checks.h"

namespace vgpu::softgpu::isa {

namespace {

using mem::Access;
using Xbyak::Label;
using Xbyak::Ymm;

constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;

/// A part of a register. The rows of *.def use these names.
enum class Part : std::uint8_t { Whole, Low, High };

/// Data that each lane moves. It is consecutive in memory and in the lane's registers.
struct Piece {
    u32 offset;  ///< bytes after the lane's address
    u32 row;     ///< the first register
};

/// Indices of words for VPERMI2D, to turn 16 pairs of words into two registers of 16 words, or the
/// reverse.
struct alignas(64) PairTables {
    std::array<u32, 16> low_words, high_words, first_pairs, last_pairs;
};

constexpr PairTables kPairs = [] {
    PairTables out{};
    for (u32 k = 0; k < 16; ++k) {
        out.low_words[k] = 2 * k;
        out.high_words[k] = 2 * k + 1;
        out.first_pairs[k] = k / 2 + k % 2 * 16;
        out.last_pairs[k] = out.first_pairs[k] + 8;
    }
    return out;
}();

/// Executes VPERMI2D with one of the tables. `to` must be neither `first` nor `second`. Changes
/// rax.
void permute(Emitter& e, const Zmm& to, const std::array<u32, 16>& table, const Zmm& first,
             const Zmm& second) {
    e.c.mov(e.c.rax, std::bit_cast<std::uintptr_t>(table.data()));
    e.c.vmovdqa32(to, e.c.zword[e.c.rax]);
    e.c.vpermi2d(to, first, second);
}

/// Sets k5 to the mask of a quarter's lanes that are on. Gathers and scatters use this copy,
/// because they clear their mask register.
const Opmask& copy_lanes_to_k5(Emitter& e, unsigned quarter) {
    if (e.is_masked())
        e.c.kmovw(e.c.k5, Emitter::lanes_on(quarter));
    else
        e.c.kxnorw(e.c.k5, e.c.k5, e.c.k5);
    return e.c.k5;
}

/// `to` under the mask of the first, or the last, eight lanes of a quarter; may change k5.
template <class To> To under_half(Emitter& e, const To& to, unsigned quarter, unsigned half) {
    constexpr std::uint8_t half_lanes = 8;
    if (!e.is_masked()) return to;
    if (half == 0) return to | Emitter::lanes_on(quarter);
    e.c.kshiftrw(e.c.k5, Emitter::lanes_on(quarter), half_lanes);
    return to | e.c.k5;
}

/// Bytes of half a quarter: eight pairs of words.
constexpr u32 kHalfBytes = 64;

// ---- loads of words

void load_run(Emitter& e, const AddressChecks& at, const Piece& piece, u32 words) {
    const Zmm first(28), second(29), out(30);
    for (unsigned q = 0; q < kQuarters; ++q) {
        if (words == 1) {
            e.c.vmovdqu32(e.zero_masked(first, q),
                          e.c.zword[at.first_lane_operand(q, piece.offset)]);
            e.put_quarter(piece.row, q, first);
            continue;
        }
        e.c.vmovdqu64(under_half(e, first, q, 0),
                      e.c.zword[at.first_lane_operand(q, piece.offset)]);
        e.c.vmovdqu64(under_half(e, second, q, 1),
                      e.c.zword[at.first_lane_operand(q, piece.offset + kHalfBytes)]);
        permute(e, out, kPairs.low_words, first, second);
        e.put_quarter(piece.row, q, out);
        permute(e, out, kPairs.high_words, first, second);
        e.put_quarter(piece.row + 1, q, out);
    }
}

void load_one(Emitter& e, const AddressChecks& at, const Piece& piece, u32 words) {
    const Zmm value(29);
    for (u32 k = 0; k < words; ++k)
        for (unsigned q = 0; q < kQuarters; ++q) {
            if (q == 0 || !e.is_masked())
                e.c.vpbroadcastd(value, e.c.dword[at.first_lane_operand(q, piece.offset + k * 4)]);
            e.put_quarter(piece.row + k, q, value);
        }
}

void load_each(Emitter& e, const AddressChecks& at, const Piece& piece, u32 words) {
    const Zmm value(29);
    for (u32 k = 0; k < words; ++k)
        for (unsigned q = 0; q < kQuarters; ++q) {
            const Opmask& lanes = copy_lanes_to_k5(e, q);
            e.c.vpxord(value, value, value);
            e.c.vpgatherdd(value | lanes, e.c.ptr[at.vsib_operand(q, piece.offset + k * 4)]);
            e.put_quarter(piece.row + k, q, value);
        }
}

/// Writes three paths: for lanes at consecutive addresses (one or two words only), for lanes at one
/// address, and for any other addresses.
void load_words(Emitter& e, AddressChecks& at, std::span<const Piece> pieces, u32 words) {
    Label no_run, no_one, done;
    if (words <= 2) {
        at.write_run_check(words * 4, no_run);
        for (const Piece& piece : pieces) load_run(e, at, piece, words);
        e.c.jmp(done, kNear);
    }
    e.c.L(no_run);
    at.write_same_check(no_one);
    for (const Piece& piece : pieces) load_one(e, at, piece, words);
    e.c.jmp(done, kNear);
    e.c.L(no_one);
    for (const Piece& piece : pieces) load_each(e, at, piece, words);
    e.c.L(done);
}

// ---- loads of bytes and halves

template <class T> void load_extended(Emitter& e, const Zmm& to, const Xbyak::RegExp& from) {
    if constexpr (std::is_same_v<T, u8>) e.c.vpmovzxbd(to, e.c.xword[from]);
    if constexpr (std::is_same_v<T, i8>) e.c.vpmovsxbd(to, e.c.xword[from]);
    if constexpr (std::is_same_v<T, u16>) e.c.vpmovzxwd(to, e.c.yword[from]);
    if constexpr (std::is_same_v<T, i16>) e.c.vpmovsxwd(to, e.c.yword[from]);
}

/// Sign-extends or zero-extends the low byte or half of each word, a T, to the whole word.
template <class T> void extend(Emitter& e, const Zmm& value) {
    constexpr std::uint8_t other_bits = 32 - 8 * sizeof(T);
    e.c.vpslld(value, value, other_bits);
    if constexpr (std::is_signed_v<T>)
        e.c.vpsrad(value, value, other_bits);
    else
        e.c.vpsrld(value, value, other_bits);
}

/// If the lanes are not at consecutive addresses, gathers a whole word for each lane. If the word
/// of a lane reaches beyond the page or LDS, the slow path loads all lanes.
template <class T> void load_parts(Emitter& e, AddressChecks& at, const Piece& piece) {
    Label no_run, done;
    const Zmm value(29);
    at.write_run_check(sizeof(T), no_run);
    for (unsigned q = 0; q < kQuarters; ++q) {
        load_extended<T>(e, e.zero_masked(value, q), at.first_lane_operand(q, piece.offset));
        e.put_quarter(piece.row, q, value);
    }
    e.c.jmp(done, kNear);
    e.c.L(no_run);
    at.write_tail_check(sizeof(u32) - sizeof(T));
    for (unsigned q = 0; q < kQuarters; ++q) {
        const Opmask& lanes = copy_lanes_to_k5(e, q);
        e.c.vpxord(value, value, value);
        e.c.vpgatherdd(value | lanes, e.c.ptr[at.vsib_operand(q, piece.offset)]);
        extend<T>(e, value);
        e.put_quarter(piece.row, q, value);
    }
    e.c.L(done);
}

// ---- stores

/// Loads `to` with the pairs of words of the first, or the last, eight lanes of a quarter, in the
/// order of lanes.
void load_pairs(Emitter& e, const Zmm& to, const Piece& piece, unsigned quarter, unsigned half) {
    permute(e, to, half == 0 ? kPairs.first_pairs : kPairs.last_pairs,
            e.quarter(piece.row, quarter, Zmm(28)), e.quarter(piece.row + 1, quarter, Zmm(29)));
}

void store_run(Emitter& e, const AddressChecks& at, const Piece& piece, u32 words) {
    const Zmm value(30);
    for (unsigned q = 0; q < kQuarters; ++q) {
        const Xbyak::Address to = e.c.zword[at.first_lane_operand(q, piece.offset)];
        if (words == 1) {
            e.c.vmovdqu32(e.merge_masked(to, q), e.quarter(piece.row, q, value));
            continue;
        }
        for (unsigned half = 0; half < 2; ++half) {
            load_pairs(e, value, piece, q, half);
            const u32 offset = piece.offset + half * kHalfBytes;
            const Xbyak::Address half_to = e.c.zword[at.first_lane_operand(q, offset)];
            e.c.vmovdqu64(under_half(e, half_to, q, half), value);
        }
    }
}

/// The host scatters in the order of lanes. So if several lanes store to one address, the last
/// lane's value stays, as in the handler (Intel SDM, VPSCATTERDD). Scatters pairs of words as a
/// whole, because the pairs of two lanes may overlap by one word.
void store_each(Emitter& e, const AddressChecks& at, const Piece& piece, u32 words) {
    const Zmm value(30);
    for (unsigned q = 0; q < kQuarters; ++q) {
        if (words == 1) {
            const Zmm from = e.quarter(piece.row, q, value);
            e.c.vpscatterdd(e.c.ptr[at.vsib_operand(q, piece.offset)] | copy_lanes_to_k5(e, q),
                            from);
            continue;
        }
        for (unsigned half = 0; half < 2; ++half) {
            constexpr std::uint8_t half_lanes = 8;
            const Ymm index(half == 0 ? AddressChecks::index(q).getIdx() : 31);
            if (half == 1) e.c.vextracti64x4(index, AddressChecks::index(q), 1);
            load_pairs(e, value, piece, q, half);
            const Opmask& lanes = copy_lanes_to_k5(e, q);
            if (half == 1) e.c.kshiftrw(lanes, lanes, half_lanes);
            e.c.vpscatterdq(e.c.ptr[at.base(q) + index + piece.offset] | lanes, value);
        }
    }
}

void store_words(Emitter& e, AddressChecks& at, const Piece& piece, u32 words) {
    Label no_run, done;
    at.write_run_check(words * 4, no_run);
    store_run(e, at, piece, words);
    e.c.jmp(done, kNear);
    e.c.L(no_run);
    store_each(e, at, piece, words);
    e.c.L(done);
}

/// Stores bytes or halves, from bit `shift` of the register on. If the lanes are not at consecutive
/// addresses, the slow path stores all lanes.
template <class T>
void store_parts(Emitter& e, AddressChecks& at, const Piece& piece, u32 shift, Label& slow) {
    const Zmm value(30);
    at.write_run_check(sizeof(T), slow);
    for (unsigned q = 0; q < kQuarters; ++q) {
        Zmm from = e.quarter(piece.row, q, value);
        if (shift != 0) {
            e.c.vpsrld(value, from, static_cast<std::uint8_t>(shift));
            from = value;
        }
        const auto to = at.first_lane_operand(q, piece.offset);
        if constexpr (sizeof(T) == 1)
            e.c.vpmovdb(e.merge_masked(e.c.xword[to], q), from);
        else
            e.c.vpmovdw(e.merge_masked(e.c.yword[to], q), from);
    }
}

// ---- the rows of vector memory

/// Loads `Count` words, or one byte or half.
template <class T, u32 Count> void load(Emitter& e, AddressChecks& at, const Piece& piece) {
    if constexpr (sizeof(T) == 4)
        load_words(e, at, std::span(&piece, 1), Count);
    else
        load_parts<T>(e, at, piece);
}

template <class T, u32 Count, Part P>
void store(Emitter& e, AddressChecks& at, const Piece& piece, Label& slow) {
    constexpr u32 shift = P == Part::High ? 16 : 0;
    if constexpr (sizeof(T) == 4)
        store_words(e, at, piece, Count);
    else
        store_parts<T>(e, at, piece, shift, slow);
}

template <class T, u32 Count> bool global_load(Emitter& e, const Instruction& i) {
    e.prepare_registers(i, Count);
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    at.write_page_check(i, Count * sizeof(T), Access::Read);
    const Piece piece{0, i.dst};
    load<T, Count>(e, at, piece);
    e.end_fast(paths);
    return true;
}

template <class T, u32 Count, Part P> bool global_store(Emitter& e, const Instruction& i) {
    e.prepare_registers(i, 0);
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    at.write_page_check(i, Count * sizeof(T), Access::Write);
    const Piece piece{0, i.src[1].value};
    store<T, Count, P>(e, at, piece, paths.slow);
    e.end_fast(paths);
    return true;
}

template <Encoding E, class T, u32 Count, Part P> constexpr EmitFunction load_row() {
    constexpr bool is_covered = E == Encoding::Flat || E == Encoding::Global;
    if constexpr (is_covered && P == Part::Whole) return &global_load<T, Count>;
    return nullptr;
}

/// Stores of three and four words have no row. They call the handler, because the data of lanes may
/// overlap and the handler stores in the order of lanes.
template <Encoding E, class T, u32 Count, Part P> constexpr EmitFunction store_row() {
    constexpr bool is_covered = E == Encoding::Flat || E == Encoding::Global;
    if constexpr (is_covered && Count <= 2) return &global_store<T, Count, P>;
    return nullptr;
}

// ---- the rows of LDS

template <class T, u32 Count> bool lds_load(Emitter& e, const Instruction& i) {
    e.prepare_registers(i, Count);
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    const u32 offset = static_cast<u32>(i.imm);
    at.write_lds_check(i.src[0].value, offset + u32{Count * sizeof(T)});
    const Piece piece{offset, i.dst};
    load<T, Count>(e, at, piece);
    e.end_fast(paths);
    return true;
}

/// Loads from two addresses. `i.imm` holds two offsets of eight bits, in units of `Stride` bytes.
template <class T, u32 Stride> bool lds_load_two(Emitter& e, const Instruction& i) {
    constexpr u32 words = sizeof(T) / 4, byte = 0xff;
    const u32 offsets = static_cast<u32>(i.imm);
    const std::array pieces{Piece{(offsets & byte) * Stride, i.dst},
                            Piece{(offsets >> 8 & byte) * Stride, i.dst + words}};
    e.prepare_registers(i, 2 * words);
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    at.write_lds_check(i.src[0].value,
                       std::max(pieces[0].offset, pieces[1].offset) + u32{sizeof(T)});
    load_words(e, at, pieces, words);
    e.end_fast(paths);
    return true;
}

template <class T, u32 Count, Part P> bool lds_store(Emitter& e, const Instruction& i) {
    e.prepare_registers(i, 0);
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    const u32 offset = static_cast<u32>(i.imm);
    at.write_lds_check(i.src[0].value, offset + u32{Count * sizeof(T)});
    const Piece piece{offset, i.src[1].value};
    store<T, Count, P>(e, at, piece, paths.slow);
    e.end_fast(paths);
    return true;
}

template <class T, u32 Count, Part P> constexpr EmitFunction lds_load_row() {
    if constexpr (P == Part::Whole) return &lds_load<T, Count>;
    return nullptr;
}

template <class T, u32 Count, Part P> constexpr EmitFunction lds_store_row() {
    if constexpr (Count <= 2) return &lds_store<T, Count, P>;
    return nullptr;
}

// ---- scalar memory

/// Copies the words at host address r11 + rdx, which write_scalar_page_check() has set, to scalar
/// registers.
void copy_scalars(Emitter& e, u32 dst, u32 words) {
    const Xbyak::Address to = e.scalar32(dst), from = e.c.ptr[e.c.r11 + e.c.rdx];
    if (words == 1) {
        e.c.mov(e.c.eax, from);
        e.c.mov(to, e.c.eax);
    } else if (words == 2) {
        e.c.mov(e.c.rax, from);
        e.c.mov(e.scalar64(dst), e.c.rax);
    } else {
        constexpr int free = 31;
        const Xbyak::Xmm x(free);
        const Ymm y(free);
        const Zmm z(free);
        const Xbyak::Xmm& value = words == 4   ? x
                                  : words == 8 ? static_cast<const Xbyak::Xmm&>(y)
                                               : static_cast<const Xbyak::Xmm&>(z);
        e.c.vmovdqu32(value, from);
        e.c.vmovdqu32(e.c.ptr[e.c.r12 + std::size_t{dst} * 4], value);
    }
}

template <u32 Count> bool scalar_load(Emitter& e, const Instruction& i) {
    const Operand& offset = i.src[1];
    const bool has_offset = offset.kind != OperandKind::None;
    if (has_offset && !Emitter::is_scalar_readable(offset)) return false;
    Emitter::Paths& paths = e.begin_fast(i);
    AddressChecks at(e, paths);
    e.c.mov(e.c.rax, e.scalar64(i.src[0].value));
    if (i.imm != 0) e.c.add(e.c.rax, static_cast<u32>(i.imm));
    if (has_offset) {
        e.load(e.c.ecx, offset);
        e.c.add(e.c.rax, e.c.rcx);
    }
    at.write_scalar_page_check(Count * 4);
    copy_scalars(e, i.dst, Count);
    e.end_fast(paths);
    e.scalars_changed(i.dst, Count);
    return true;
}

#define SET(n, row) table[static_cast<std::size_t>(Op::n)] = row;

}  // namespace

void fill_memory_rows(EmitTable& table) {
#define ROW(kind, ...) kind(__VA_ARGS__)
#define ML(n, code, encoding, t, count, part) \
    SET(n, (load_row<Encoding::encoding, t, count, Part::part>()))
#define MS(n, code, encoding, t, count, part) \
    SET(n, (store_row<Encoding::encoding, t, count, Part::part>()))
#define MA(...)
#define MLDS(...)
#define MX(...)
#include "pf-driver/softgpu/isa/ops/memory.def"
#define DL(n, code, t, count, part) SET(n, (lds_load_row<t, count, Part::part>()))
#define DS2L(n, code, t, stride) SET(n, (&lds_load_two<t, stride>))
#define DW(n, code, t, count, part) SET(n, (lds_store_row<t, count, Part::part>()))
#define DS2W(...)
#define DA(...)
#define DA2(...)
#define DX2(...)
#define DX(...)
#include "pf-driver/softgpu/isa/ops/ds.def"
#define SML(n, code, dwords) SET(n, &scalar_load<dwords>)
#define SMB(...)
#define SMS(...)
#define SMT(...)
#define SMC(...)
#define SMD(...)
#define SMP(...)
#define SMBP(...)
#define SMA(...)
#define SMBA(...)
#define SMX(...)
#include "pf-driver/softgpu/isa/ops/smem.def"
}

}  // namespace vgpu::softgpu::isa
