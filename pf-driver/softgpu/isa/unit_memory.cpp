// SPDX-License-Identifier: MIT
//
// Execute unit: vector memory (flat, global, scratch, buffers). Compiled once for every variant.
//
// It goes lane by lane through addresses that each segment computes; when the addresses of all 64
// lanes follow each other, a whole row moves at once.
#include "pf-driver/softgpu/isa/memory_access.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

/// How an instruction addresses; the rows of ops/*.def name it.
enum class Segment { Flat, Global, Scratch, Buffer };

/// Address of a byte of a lane's scratch: dwords of all lanes are interleaved.
u64 scratch_address(const Env& env, u64 offset, u32 lane) {
    const u64 base = env.pair(static_cast<u32>(ScalarReg::FlatScratch));
    return base + offset / kScratchCell * kScratchCell * kLanes + lane * kScratchCell +
           offset % kScratchCell;
}

/// Calls move(address, bytes before, size) for every piece that lies in one interleaved dword.
template <class Move>
bool for_scratch_cells(const Env& env, u64 offset, u32 lane, u32 size, Move move) {
    for (u32 done = 0; done < size;) {
        const u64 at = offset + done;
        const u32 piece =
            std::min<u32>(size - done, static_cast<u32>(kScratchCell - at % kScratchCell));
        if (!move(scratch_address(env, at, lane), done, piece)) return false;
        done += piece;
    }
    return true;
}

/// `extra` bytes behind the lane's address. False on a fault, which the port holds.
bool read_lane(Env& env, const Addresses& a, u32 lane, u64 extra, void* to, u32 size) {
    const u64 at = a.at[lane] + extra;
    if (((a.in_lds >> lane) & 1) != 0) {
        read_lds(env, at, to, size);
        return true;
    }
    if (((a.in_scratch >> lane) & 1) == 0) return read_global(env, at, to, size);
    return for_scratch_cells(env, at, lane, size, [&](u64 va, u32 done, u32 piece) {
        return read_global(env, va, static_cast<std::byte*>(to) + done, piece);
    });
}

bool write_lane(Env& env, const Addresses& a, u32 lane, u64 extra, const void* from, u32 size) {
    const u64 at = a.at[lane] + extra;
    if (((a.in_lds >> lane) & 1) != 0) {
        write_lds(env, at, from, size);
        return true;
    }
    if (((a.in_scratch >> lane) & 1) == 0) return write_global(env, at, from, size);
    return for_scratch_cells(env, at, lane, size, [&](u64 va, u32 done, u32 piece) {
        return write_global(env, va, static_cast<const std::byte*>(from) + done, piece);
    });
}

// ---- addresses

/// Base and 64-bit vector address, or scalar base and 32-bit vector offset.
void vector_addresses(const Env& env, const Instruction& i, Addresses& out) {
    const u64 offset = static_cast<u64>(i64{i.imm});
    const u32* low = env.v[i.src[0].value].lane.data();
    if (i.src[2].kind == OperandKind::Scalar) {
        const u64 base = env.scalar64(i.src[2]) + offset;
        for (unsigned l = 0; l < kLanes; ++l) out.at[l] = base + low[l];
        return;
    }
    const u32* high = env.v[i.src[0].value + 1].lane.data();
    for (unsigned l = 0; l < kLanes; ++l) out.at[l] = (u64{low[l]} | (u64{high[l]} << 32)) + offset;
}

/// Flat addresses may point through the windows of LDS and scratch.
/// Windows are compared by their upper 32 bits: each is 4 GiB and aligned to that (SH_MEM_BASES).
void find_apertures(const Env& env, Addresses& out) {
    const u64 shared = env.context.apertures.shared_base >> 32;
    const u64 priv = env.context.apertures.private_base >> 32;
    for (unsigned l = 0; l < kLanes; ++l) {
        out.in_lds |= u64{(out.at[l] >> 32) == shared} << l;
        out.in_scratch |= u64{(out.at[l] >> 32) == priv} << l;
    }
    const u64 windowed = (out.in_lds | out.in_scratch) & env.exec();
    for (u64 left = windowed; left != 0; left &= left - 1)
        out.at[std::countr_zero(left)] &= 0xffffffff;
}

void scratch_addresses(const Env& env, const Instruction& i, Addresses& out) {
    const bool is_scalar = i.src[2].kind == OperandKind::Scalar;
    const u32 base = (is_scalar ? env.scalar32(i.src[2]) : 0) + static_cast<u32>(i.imm);
    for (unsigned l = 0; l < kLanes; ++l)
        out.at[l] = base + (is_scalar ? 0 : env.v[i.src[0].value].lane[l]);
    out.in_scratch = ~u64{0};
}

template <Segment S> void addresses(const Env& env, const Instruction& i, Addresses& out) {
    if constexpr (S == Segment::Scratch) return scratch_addresses(env, i, out);
    if constexpr (S == Segment::Buffer) return buffer_addresses(env, i, 0, 4, out);
    vector_addresses(env, i, out);
    if constexpr (S == Segment::Flat) find_apertures(env, out);
}

// ---- whole rows

/// Whether all lanes are on and lane l is at the first address plus l times `step`.
/// Without an early exit the loop vectorises, and most accesses are contiguous anyway.
bool is_contiguous(const Env& env, const Addresses& a, u64 step) {
    if (env.exec() != ~u64{0} || (a.in_lds | a.in_scratch | a.dropped) != 0) return false;
    const u64 first = a.at[0];
    u64 wrong = 0;
    for (unsigned l = 0; l < kLanes; ++l) wrong |= a.at[l] ^ (first + l * step);
    return wrong == 0;
}

/// Host memory of a range inside one page, or nullptr: then the slow way finds out why.
std::byte* host_range(Env& env, u64 va, u64 size, Access access) {
    if (va % mem::Port::kPageBytes + size > mem::Port::kPageBytes) return nullptr;
    std::byte* host = env.context.port.at(GpuVa{va}, access);
    if (host == nullptr) env.context.port.clear_fault();
    return host;
}

// ---- loads and stores

template <class T, unsigned Count>
bool load_lane(Env& env, const Addresses& a, u32 lane, Row* rows) {
    if constexpr (sizeof(T) == 4) {
        u32 words[Count];
        if (!read_lane(env, a, lane, 0, words, sizeof words)) return false;
        for (unsigned k = 0; k < Count; ++k) rows[k].lane[lane] = words[k];
    } else {
        T value{};
        if (!read_lane(env, a, lane, 0, &value, sizeof value)) return false;
        rows[0].lane[lane] = static_cast<u32>(i32{value});
    }
    return true;
}

template <Segment S, class T, unsigned Count, Part P>
Outcome load_op(Env& env, const Instruction& i) {
    Addresses a;
    addresses<S>(env, i, a);
    Row rows[Count];
    if constexpr (sizeof(T) == 4) {
        constexpr u64 step = Count * 4;
        if (is_contiguous(env, a, step)) {
            if (const std::byte* host = host_range(env, a.at[0], step * kLanes, Access::Read)) {
                from_memory<Count>(host, rows);
                for (unsigned k = 0; k < Count; ++k)
                    std::memcpy(env.v[i.dst + k].lane.data(), rows[k].lane, sizeof(Row));
                return Outcome::Next;
            }
        }
    }
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        if (!load_lane<T, Count>(env, a, lane, rows))
            return fault(env, lane, a.at[lane], Access::Read);
    }
    write_back<P>(env, i.dst, rows, Count, env.exec());
    return Outcome::Next;
}

template <class T, unsigned Count, Part P>
bool store_lane(Env& env, const Addresses& a, u32 first, u32 lane) {
    if constexpr (sizeof(T) == 4) {
        u32 words[Count];
        for (unsigned k = 0; k < Count; ++k) words[k] = env.v[first + k].lane[lane];
        return write_lane(env, a, lane, 0, words, sizeof words);
    } else {
        const u32 word = env.v[first].lane[lane];
        const T value = static_cast<T>(P == Part::High ? word >> 16 : word);
        return write_lane(env, a, lane, 0, &value, sizeof value);
    }
}

template <Segment S, class T, unsigned Count, Part P>
Outcome store_op(Env& env, const Instruction& i) {
    Addresses a;
    addresses<S>(env, i, a);
    if constexpr (sizeof(T) == 4) {
        constexpr u64 step = Count * 4;
        if (is_contiguous(env, a, step)) {
            if (std::byte* host = host_range(env, a.at[0], step * kLanes, Access::Write)) {
                to_memory<Count>(env, i.src[1].value, host);
                return Outcome::Next;
            }
        }
    }
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        if (!store_lane<T, Count, P>(env, a, i.src[1].value, lane))
            return fault(env, lane, a.at[lane], Access::Write);
    }
    return Outcome::Next;
}

/// Buffers: every dword has an address of its own, because dwords are interleaved when swizzled.
template <class T, unsigned Count, Part P> Outcome buffer_load(Env& env, const Instruction& i) {
    Row rows[Count];
    for (unsigned k = 0; k < Count; ++k) {
        Addresses a;
        buffer_addresses(env, i, k, sizeof(T), a);
        if (sizeof(T) == 4 && is_contiguous(env, a, 4)) {
            if (const std::byte* host = host_range(env, a.at[0], sizeof(Row), Access::Read)) {
                std::memcpy(rows[k].lane, host, sizeof(Row));
                continue;
            }
        }
        for (u64 left = env.exec(); left != 0; left &= left - 1) {
            const u32 lane = static_cast<u32>(std::countr_zero(left));
            rows[k].lane[lane] = 0;
            if (((a.dropped >> lane) & 1) == 0 && !load_lane<T, 1>(env, a, lane, &rows[k]))
                return fault(env, lane, a.at[lane], Access::Read);
        }
    }
    if (Count == 1 && i.to_lds) return row_to_lds(env, i, rows[0]);
    write_back<P>(env, i.dst, rows, Count, env.exec());
    return Outcome::Next;
}

/// Each lane's dword of LDS goes to its place in the buffer.
Outcome do_store_lds(Env& env, const Instruction& i) {
    Addresses a;
    buffer_addresses(env, i, 0, 4, a);
    for (u64 left = env.exec() & ~a.dropped; left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        u32 word = 0;
        read_lds(env, lds_of_lane(env, i, lane), &word, sizeof word);
        if (!write_global(env, a.at[lane], &word, sizeof word))
            return fault(env, lane, a.at[lane], Access::Write);
    }
    return Outcome::Next;
}

template <class T, unsigned Count, Part P> Outcome buffer_store(Env& env, const Instruction& i) {
    for (unsigned k = 0; k < Count; ++k) {
        Addresses a;
        buffer_addresses(env, i, k, sizeof(T), a);
        if (sizeof(T) == 4 && is_contiguous(env, a, 4)) {
            if (std::byte* host = host_range(env, a.at[0], sizeof(Row), Access::Write)) {
                to_memory<1>(env, i.src[1].value + k, host);
                continue;
            }
        }
        for (u64 left = env.exec() & ~a.dropped; left != 0; left &= left - 1) {
            const u32 lane = static_cast<u32>(std::countr_zero(left));
            if (!store_lane<T, 1, P>(env, a, i.src[1].value + k, lane))
                return fault(env, lane, a.at[lane], Access::Write);
        }
    }
    return Outcome::Next;
}

template <Segment S, class T, unsigned Count, Part P>
Outcome any_load(Env& env, const Instruction& i) {
    if constexpr (S == Segment::Buffer)
        return buffer_load<T, Count, P>(env, i);
    else
        return load_op<S, T, Count, P>(env, i);
}

template <Segment S, class T, unsigned Count, Part P>
Outcome any_store(Env& env, const Instruction& i) {
    if constexpr (S == Segment::Buffer)
        return buffer_store<T, Count, P>(env, i);
    else
        return store_op<S, T, Count, P>(env, i);
}

// ---- atomics

/// LDS and scratch belong to the group, whose waves run in one thread: no host atomic is needed.
template <class M, class T>
bool atomic_lane(Env& env, const Addresses& at, u32 lane, T a, T b, T& old) {
    const bool in_window = (((at.in_lds | at.in_scratch) >> lane) & 1) != 0;
    if (!in_window) return atomic_global<M, T>(env, at.at[lane], a, b, old);
    if (!read_lane(env, at, lane, 0, &old, sizeof old)) return false;
    const T value = M::value(old, a, b);
    return write_lane(env, at, lane, 0, &value, sizeof value);
}

/// M::value(d, a, b): memory, data, comparand. A compare-and-swap has both in its data registers.
template <Segment S, class M> Outcome atomic_op(Env& env, const Instruction& i) {
    using T = typename M::T;
    constexpr u32 words = sizeof(T) / 4;
    Addresses at;
    addresses<S>(env, i, at);
    if constexpr (S == Segment::Buffer) buffer_addresses(env, i, 0, sizeof(T), at);
    const bool has_comparand = i.src[1].regs > words;
    Row rows[words];
    for (u32 k = 0; k < words; ++k) fill(rows[k], 0);
    for (u64 left = env.exec() & ~at.dropped; left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const T a = data_of<T>(env, i.src[1].value, lane);
        const T b = has_comparand ? data_of<T>(env, i.src[1].value + words, lane) : T{};
        T old{};
        if (!atomic_lane<M, T>(env, at, lane, a, b, old))
            return fault(env, lane, at.at[lane], Access::Write);
        keep_old<T>(rows, lane, old);
    }
    if (i.returns) write_back<Part::Whole>(env, i.dst, rows, words, env.exec());
    return Outcome::Next;
}

/// Memory is coherent here; what is left of a cache flush is the order of accesses.
Outcome do_cache_fence(Env&, const Instruction&) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Outcome::Next;
}

// ---- the rows

#define VGPU_ATOMIC(n, type, returns, expression)                                     \
    struct n {                                                                        \
        using T = type;                                                               \
        static constexpr bool kReturns = returns;                                     \
        VGPU_INLINE static T value([[maybe_unused]] T d, T a, [[maybe_unused]] T b) { \
            return static_cast<T>(expression);                                        \
        }                                                                             \
    };
#define MA(n, code, segment, type, expression) VGPU_ATOMIC(n, type, true, expression)
#define VGPU_ROW(...)
#include "pf-driver/softgpu/isa/ops/all.inc"
#undef VGPU_ROW

}  // namespace

void fill_memory(HandlerTable& table) {
#define VGPU_SET(n, ...) table[static_cast<std::size_t>(Op::n)] = &__VA_ARGS__;
#define ML(n, code, segment, t, count, part) \
    VGPU_SET(n, any_load<Segment::segment, t, count, Part::part>)
#define MS(n, code, segment, t, count, part) \
    VGPU_SET(n, any_store<Segment::segment, t, count, Part::part>)
#define MA(n, code, segment, t, v) VGPU_SET(n, atomic_op<Segment::segment, n>)
#define MLDS(n, code, f) VGPU_SET(n, f)
#define MX(n, code, f) VGPU_SET(n, f)
#define VGPU_ROW(...)
#include "pf-driver/softgpu/isa/ops/all.inc"
#undef VGPU_ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
