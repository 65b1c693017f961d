// SPDX-License-Identifier: MIT
//
// Execute unit: vector memory (flat, global, scratch, buffers). Each variant (decode.h) has its own
// build of this file.
//
// Flat, global, scratch and buffer instructions compute addresses differently, and then share the
// code that moves data. If the words of all 64 lanes follow each other in one page, a load or store
// moves them at once. Otherwise it tries to move the data of eight lanes at once (lane_groups.h).
// If that fails, too, it moves the data lane by lane. Atomics access the lanes one by one.
#include "pf-driver/softgpu/isa/lane_groups.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

/// Reads `size` bytes at the lane's address. False if the access fails.
bool read_lane(Env& env, const Addresses& a, u32 lane, void* to, u32 size) {
    const u64 at = a.at[lane];
    if (((a.in_lds >> lane) & 1) != 0) {
        read_lds(env, at, to, size);
        return true;
    }
    if (((a.in_scratch >> lane) & 1) == 0) return read_global(env, at, to, size);
    return for_scratch_cells(env, at, lane, size, [&](u64 va, u32 done, u32 piece) {
        return read_global(env, va, static_cast<std::byte*>(to) + done, piece);
    });
}

bool write_lane(Env& env, const Addresses& a, u32 lane, const void* from, u32 size) {
    const u64 at = a.at[lane];
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

/// Each address is the constant offset plus either a 64-bit address in VGPRs, or a scalar base plus
/// a 32-bit offset in a VGPR.
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

/// Turns flat addresses in the windows of LDS and scratch into offsets. Compares only the upper 32
/// bits, because each window has 4 GiB and is aligned to 4 GiB (Apertures in execute.h).
void resolve_apertures(const Env& env, Addresses& out) {
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

/// Each offset into scratch is the constant offset plus either a scalar or a vector offset.
void scratch_addresses(const Env& env, const Instruction& i, Addresses& out) {
    const bool is_scalar = i.src[2].kind == OperandKind::Scalar;
    const u32 base = (is_scalar ? env.scalar32(i.src[2]) : 0) + static_cast<u32>(i.imm);
    for (unsigned l = 0; l < kLanes; ++l)
        out.at[l] = base + (is_scalar ? 0 : env.v[i.src[0].value].lane[l]);
    out.in_scratch = ~u64{0};
}

template <Encoding E> void addresses(const Env& env, const Instruction& i, Addresses& out) {
    if constexpr (E == Encoding::Scratch) return scratch_addresses(env, i, out);
    if constexpr (E == Encoding::Mubuf) return buffer_addresses(env, i, 0, 4, out);
    vector_addresses(env, i, out);
    if constexpr (E == Encoding::Flat) resolve_apertures(env, out);
}

// ---- whole rows

/// True if `lanes` has all lanes, no lane is in LDS or scratch, and the address of lane l is the
/// address of lane 0 plus l * `step`. The loop has no early exit, so that it vectorises.
bool is_contiguous(const Addresses& a, u64 lanes, u64 step) {
    if (lanes != ~u64{0} || (a.in_lds | a.in_scratch) != 0) return false;
    const u64 first = a.at[0];
    u64 wrong = 0;
    for (unsigned l = 0; l < kLanes; ++l) wrong |= a.at[l] ^ (first + l * step);
    return wrong == 0;
}

/// Host address of a range inside one page. nullptr if the range crosses a page border, faults, or
/// has no host address; the lane-by-lane path then reports the fault, if there is one.
std::byte* host_range(Env& env, u64 va, u64 size, Access access) {
    if (va % mem::Port::kPageBytes + size > mem::Port::kPageBytes) return nullptr;
    std::byte* host = env.context.port.at(GpuVa{va}, access);
    if (host == nullptr) env.context.port.clear_fault();
    return host;
}

/// True if all active lanes have offsets into scratch that are multiples of 4, as for spilled
/// registers.
bool is_in_scratch_words(const Env& env, const Addresses& a) {
    if ((env.exec() & ~a.in_scratch) != 0) return false;
    u64 low_bits = 0;
    for (u64 left = env.exec(); left != 0; left &= left - 1)
        low_bits |= a.at[std::countr_zero(left)];
    return low_bits % kScratchCell == 0;
}

/// Global addresses of dword `k` of each lane's data in scratch. If all lanes have the same offset
/// into scratch, these addresses are consecutive.
Addresses scratch_words(const Env& env, const Addresses& a, u32 k) {
    Addresses out;
    for (unsigned l = 0; l < kLanes; ++l)
        out.at[l] = scratch_address(env, a.at[l] + k * kScratchCell, l);
    return out;
}

// ---- loads and stores

/// Returned by load_rows() and store_rows() if no lane faulted.
constexpr u32 kNoLane = kLanes;

template <class T, unsigned Count>
bool load_lane(Env& env, const Addresses& a, u32 lane, Row* rows) {
    if constexpr (sizeof(T) == 4) {
        u32 words[Count];
        if (!read_lane(env, a, lane, words, sizeof words)) return false;
        for (unsigned k = 0; k < Count; ++k) rows[k].lane[lane] = words[k];
    } else {
        T value{};
        if (!read_lane(env, a, lane, &value, sizeof value)) return false;
        rows[0].lane[lane] = static_cast<u32>(i32{value});
    }
    return true;
}

/// Loads the lanes whose bit in `lanes` is set into `rows`; other lanes of `rows` may lose their
/// contents. Returns the first lane that faults, or kNoLane.
template <class T, unsigned Count>
u32 load_rows(Env& env, const Addresses& a, u64 lanes, Row* rows) {
    constexpr u64 step = Count * 4;
    if (sizeof(T) == 4 && is_contiguous(a, lanes, step)) {
        if (const std::byte* host = host_range(env, a.at[0], step * kLanes, Access::Read)) {
            from_memory<Count>(host, rows);
            return kNoLane;
        }
    }
    PageCursor pages(env, Access::Read);
    for (unsigned first = 0; first < kLanes; first += kGroup) {
        const u32 on = static_cast<u32>(lanes >> first) & kWholeGroup;
        if (on == 0) continue;
        const bool is_global = (((a.in_lds | a.in_scratch) >> first) & on) == 0;
        if (is_global && load_group<T, Count>(pages, a.at, on, first, rows)) continue;
        for (u32 left = on; left != 0; left &= left - 1) {
            const u32 lane = first + static_cast<u32>(std::countr_zero(left));
            if (!load_lane<T, Count>(env, a, lane, rows)) return lane;
        }
    }
    return kNoLane;
}

/// Computes the address of every dword separately, because a swizzled buffer interleaves dwords.
template <class T, unsigned Count, Part P> Outcome buffer_load(Env& env, const Instruction& i) {
    Row rows[Count];
    u32 hits = 0;
    for (unsigned k = 0; k < Count; ++k) {
        Addresses a;
        buffer_addresses(env, i, k, sizeof(T), a);
        const u32 failed = load_rows<T, 1>(env, a, env.exec() & ~a.dropped, &rows[k]);
        if (failed != kNoLane) return fault(env, failed, address_of(env, a, failed), Access::Read);
        for (u64 left = a.dropped; left != 0; left &= left - 1)
            rows[k].lane[std::countr_zero(left)] = 0;
        hits |= watch_hits(env, a, env.exec(), sizeof(T), WatchedAccess::Load);
    }
    if (Count == 1 && i.to_lds)
        row_to_lds(env, i, rows[0]);
    else
        write_back<P>(env, i.dst, rows, Count, env.exec());
    return done_with_memory(env, hits);
}

template <Encoding E, class T, unsigned Count, Part P>
Outcome load_op(Env& env, const Instruction& i) {
    if constexpr (E == Encoding::Mubuf) return buffer_load<T, Count, P>(env, i);
    Addresses a;
    addresses<E>(env, i, a);
    Row rows[Count];
    u32 failed = kNoLane;
    if (E != Encoding::Global && sizeof(T) == 4 && is_in_scratch_words(env, a)) {
        for (u32 k = 0; k < Count && failed == kNoLane; ++k)
            failed = load_rows<T, 1>(env, scratch_words(env, a, k), env.exec(), &rows[k]);
    } else {
        failed = load_rows<T, Count>(env, a, env.exec(), rows);
    }
    if (failed != kNoLane) return fault(env, failed, address_of(env, a, failed), Access::Read);
    write_back<P>(env, i.dst, rows, Count, env.exec());
    return done_with_memory(env,
                            watch_hits(env, a, env.exec(), sizeof(T) * Count, WatchedAccess::Load));
}

/// The shift that moves the stored part of a register to its lower end.
template <Part P> constexpr unsigned kPartShift = P == Part::High ? 16 : 0;

template <class T, unsigned Count, Part P>
bool store_lane(Env& env, const Addresses& a, u32 first, u32 lane) {
    if constexpr (sizeof(T) == 4) {
        u32 words[Count];
        for (unsigned k = 0; k < Count; ++k) words[k] = env.v[first + k].lane[lane];
        return write_lane(env, a, lane, words, sizeof words);
    } else {
        const T value = static_cast<T>(env.v[first].lane[lane] >> kPartShift<P>);
        return write_lane(env, a, lane, &value, sizeof value);
    }
}

/// Stores the registers from `source` on; returns the first lane that faults, or kNoLane. Stores in
/// lane order: if several lanes write one address, the last lane's value stays.
template <class T, unsigned Count, Part P>
u32 store_rows(Env& env, const Addresses& a, u64 lanes, u32 source) {
    constexpr u64 step = Count * 4;
    if (sizeof(T) == 4 && is_contiguous(a, lanes, step)) {
        if (std::byte* host = host_range(env, a.at[0], step * kLanes, Access::Write)) {
            to_memory<Count>(env, source, host);
            return kNoLane;
        }
    }
    PageCursor pages(env, Access::Write);
    for (unsigned first = 0; first < kLanes; first += kGroup) {
        const u32 on = static_cast<u32>(lanes >> first) & kWholeGroup;
        if (on == 0) continue;
        const bool is_global = (((a.in_lds | a.in_scratch) >> first) & on) == 0;
        if (is_global &&
            store_group<T, Count>(pages, a.at, on, first, env.v + source, kPartShift<P>))
            continue;
        for (u32 left = on; left != 0; left &= left - 1) {
            const u32 lane = first + static_cast<u32>(std::countr_zero(left));
            if (!store_lane<T, Count, P>(env, a, source, lane)) return lane;
        }
    }
    return kNoLane;
}

template <class T, unsigned Count, Part P> Outcome buffer_store(Env& env, const Instruction& i) {
    u32 hits = 0;
    for (unsigned k = 0; k < Count; ++k) {
        Addresses a;
        buffer_addresses(env, i, k, sizeof(T), a);
        const u32 failed = store_rows<T, 1, P>(env, a, env.exec() & ~a.dropped, i.src[1].value + k);
        if (failed != kNoLane) return fault(env, failed, address_of(env, a, failed), Access::Write);
        hits |= watch_hits(env, a, env.exec(), sizeof(T), WatchedAccess::Store);
    }
    return done_with_memory(env, hits);
}

template <Encoding E, class T, unsigned Count, Part P>
Outcome store_op(Env& env, const Instruction& i) {
    if constexpr (E == Encoding::Mubuf) return buffer_store<T, Count, P>(env, i);
    Addresses a;
    addresses<E>(env, i, a);
    const u32 source = i.src[1].value;
    u32 failed = kNoLane;
    if (E != Encoding::Global && sizeof(T) == 4 && is_in_scratch_words(env, a)) {
        for (u32 k = 0; k < Count && failed == kNoLane; ++k)
            failed = store_rows<T, 1, P>(env, scratch_words(env, a, k), env.exec(), source + k);
    } else {
        failed = store_rows<T, Count, P>(env, a, env.exec(), source);
    }
    if (failed != kNoLane) return fault(env, failed, address_of(env, a, failed), Access::Write);
    return done_with_memory(
        env, watch_hits(env, a, env.exec(), sizeof(T) * Count, WatchedAccess::Store));
}

/// Stores each lane's dword of LDS (lds_of_lane()) to the lane's address in the buffer.
Outcome do_store_lds(Env& env, const Instruction& i) {
    Addresses a;
    buffer_addresses(env, i, 0, 4, a);
    for (u64 left = env.exec() & ~a.dropped; left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        u32 word = 0;
        read_lds(env, lds_of_lane(env, i, lane), &word, sizeof word);
        if (!write_global(env, a.at[lane], &word, sizeof word))
            return fault(env, lane, address_of(env, a, lane), Access::Write);
    }
    return done_with_memory(env, watch_hits(env, a, env.exec(), 4, WatchedAccess::Store));
}

// ---- atomics

/// LDS and scratch belong to the group, whose waves run in one thread. So an atomic on LDS or
/// scratch needs no host atomic.
template <class M, class T>
bool atomic_lane(Env& env, const Addresses& at, u32 lane, T a, T b, T& old) {
    const bool in_window = (((at.in_lds | at.in_scratch) >> lane) & 1) != 0;
    if (!in_window) return atomic_global<M, T>(env, at.at[lane], a, b, old);
    if (!read_lane(env, at, lane, &old, sizeof old)) return false;
    const T value = M::value(old, a, b);
    return write_lane(env, at, lane, &value, sizeof value);
}

/// M::value() takes the old value in memory, the data and the comparand. The comparand of a
/// compare-and-swap is in the registers after the data.
template <Encoding E, class M> Outcome atomic_op(Env& env, const Instruction& i) {
    using T = typename M::T;
    constexpr u32 words = sizeof(T) / 4;
    Addresses at;
    addresses<E>(env, i, at);
    // addresses() checks only that four bytes are inside a buffer, so check again for sizeof(T).
    if constexpr (E == Encoding::Mubuf) buffer_addresses(env, i, 0, sizeof(T), at);
    const bool has_comparand = i.src[1].regs > words;
    Row rows[words];
    for (u32 k = 0; k < words; ++k) fill(rows[k], 0);
    for (u64 left = env.exec() & ~at.dropped; left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const T a = data_of<T>(env, i.src[1].value, lane);
        const T b = has_comparand ? data_of<T>(env, i.src[1].value + words, lane) : T{};
        T old{};
        if (!atomic_lane<M, T>(env, at, lane, a, b, old))
            return fault(env, lane, address_of(env, at, lane), Access::Write);
        store_old<T>(rows, lane, old);
    }
    if (i.returns) write_back<Part::Whole>(env, i.dst, rows, words, env.exec());
    return done_with_memory(env, watch_hits(env, at, env.exec(), sizeof(T), WatchedAccess::Atomic));
}

/// softgpu's memory is coherent, so a cache flush only orders accesses.
Outcome do_cache_fence(Env&, const Instruction&) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return Outcome::Next;
}

// ---- the rows of ops/*.def: a struct for each (see VGPU_HANDLER in env.h)

#define ML(n, code, encoding, t, count, part) \
    VGPU_HANDLER(n, load_op<Encoding::encoding, t, count, Part::part>)
#define MS(n, code, encoding, t, count, part) \
    VGPU_HANDLER(n, store_op<Encoding::encoding, t, count, Part::part>)
#define MA(n, code, encoding, t, v) VGPU_ATOMIC(n, t, v, atomic_op<Encoding::encoding, n>)
#define MLDS(n, code, f) VGPU_HANDLER(n, f)
#define MX(n, code, f) VGPU_HANDLER(n, f)
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/memory.def"
#undef ROW

}  // namespace

void fill_memory(HandlerTable& table) {
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/memory.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
