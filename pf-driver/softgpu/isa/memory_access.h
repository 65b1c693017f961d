// SPDX-License-Identifier: MIT
//
// Memory accesses of the execute units (unit_*.cpp): bytes of one lane at a global address or in
// LDS, rows of words between memory and registers, atomics on memory that other threads and the
// guest's CPUs access.
//
// A load writes no register until the memory of every active lane has been read, so a load that
// faults can be inspected and repeated as a whole.
//
// The execute units that access memory include this file, each into the namespace of its build
// (lane_math.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <string_view>

#include "pf-driver/softgpu/isa/lanes.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

using mem::Access;

/// The part of a 32-bit register that a load writes or a store reads.
enum class Part { Whole, Low, High };

/// Memory as T; the caller guarantees the alignment.
template <class T> T* typed(std::byte* at) {
    return static_cast<T*>(static_cast<void*>(at));
}

/// Moves the port's fault to env.result, and records the lane. If the port has no fault, an
/// indirect access (Port::read_indirect(), write_indirect()) has failed; `va` and `access` then
/// describe the fault.
[[maybe_unused]] Outcome fault(Env& env, u32 lane, u64 va, Access access) {
    mem::Port& port = env.context.port;
    mem::Fault what = port.fault();
    if (!port.has_fault()) what = {mem::FaultKind::OutOfRange, access, GpuVa{va}};
    port.clear_fault();
    env.result.fault = what;
    env.result.lane = lane;
    return Outcome::Fault;
}

// ---- bytes of one lane

/// Accesses bytes that cross a page border or have no host address. Never inlined, because such
/// accesses are rare.
[[maybe_unused, gnu::noinline]] bool read_slowly(Env& env, u64 va, void* to, u32 size) {
    const bool is_done = env.context.port.read(GpuVa{va}, {static_cast<std::byte*>(to), size});
    env.must_stop = env.context.stop.load(std::memory_order_relaxed);
    return is_done;
}

[[maybe_unused, gnu::noinline]] bool write_slowly(Env& env, u64 va, const void* from, u32 size) {
    const bool is_done =
        env.context.port.write(GpuVa{va}, {static_cast<const std::byte*>(from), size});
    env.must_stop = env.context.stop.load(std::memory_order_relaxed);
    return is_done;
}

/// Reads `size` bytes at a global address, with one copy if they are in one page that has a host
/// address. False if the access fails; the caller then calls fault().
[[maybe_unused]] bool read_global(Env& env, u64 va, void* to, u32 size) {
    mem::Port& port = env.context.port;
    if (va % mem::Port::kPageBytes + size <= mem::Port::kPageBytes) [[likely]] {
        if (const std::byte* host = port.at(GpuVa{va}, Access::Read)) [[likely]] {
            std::memcpy(to, host, size);
            return true;
        }
        if (port.has_fault()) return false;
    }
    return read_slowly(env, va, to, size);
}

[[maybe_unused]] bool write_global(Env& env, u64 va, const void* from, u32 size) {
    mem::Port& port = env.context.port;
    if (va % mem::Port::kPageBytes + size <= mem::Port::kPageBytes) [[likely]] {
        if (std::byte* host = port.at(GpuVa{va}, Access::Write)) [[likely]] {
            std::memcpy(host, from, size);
            return true;
        }
        if (port.has_fault()) return false;
    }
    return write_slowly(env, va, from, size);
}

/// If the bytes are not all inside the group's LDS, read_lds() gives 0 and write_lds() does nothing
/// (Vega ISA manual, "LDS Access").
[[maybe_unused]] void read_lds(const Env& env, u64 offset, void* to, u32 size) {
    if (offset + size <= env.lds_bytes)
        std::memcpy(to, env.lds + offset, size);
    else
        std::memset(to, 0, size);
}

[[maybe_unused]] void write_lds(const Env& env, u64 offset, const void* from, u32 size) {
    if (offset + size <= env.lds_bytes) std::memcpy(env.lds + offset, from, size);
}

/// Size in bytes of a cell. Scratch interleaves the cells of the lanes; a swizzled buffer
/// interleaves the cells of its records.
constexpr u64 kScratchCell = 4;

/// Fields of a buffer descriptor (V#), which is four SGPRs (Vega ISA manual, "Buffer Resource
/// Descriptor"). All values come from the guest.
struct BufferDescriptor {
    u64 base;
    u32 stride;        ///< bytes
    u32 records;       ///< NUM_RECORDS: the size in records or in bytes
    u32 index_stride;  ///< records whose cells are interleaved: 8, 16, 32 or 64
    bool swizzles;     ///< SWIZZLE_ENABLE
    bool adds_lane;    ///< ADD_TID_ENABLE: the lane number is added to the index
    u32 format;        ///< data format and number format (enc::kDataFormat)
    u32 select;        ///< DST_SEL_X to W, three bits each

    /// Reads the descriptor from the SGPRs `first` to `first` + 3.
    BufferDescriptor(const Env& env, u32 first) {
        const u32* w = env.s + first;
        base = (u64{w[0]} | (u64{w[1]} << 32)) & 0xffffffffffff;
        stride = (w[1] >> 16) & 0x3fff;
        swizzles = (w[1] >> 31) != 0;
        records = w[2];
        index_stride = 8u << ((w[3] >> 21) & 3);
        adds_lane = ((w[3] >> 23) & 1) != 0;
        format = (w[3] >> 15) & 0xf;
        format |= ((w[3] >> 12) & 7) << enc::kNumberFormat.first;
        select = w[3] & 0xfff;
        if (!adds_lane) return;
        constexpr unsigned stride_bits = 14;  // the bits of the data format extend the stride
        stride |= ((w[3] >> 15) & 0xf) << stride_bits;
    }
    /// The mask to apply to an offset. In private memory (`swizzles` and `adds_lane`) the sum of
    /// register and immediate wraps at 32 bits, because compilers use negative values in the
    /// register. In other buffers the sum does not wrap, so an access with ~0 in the register is
    /// outside the buffer.
    [[nodiscard]] u64 offset_mask() const {
        return swizzles && adds_lane ? u64{0xffffffff} : ~u64{0};
    }
    /// Distance from the base to byte `offset` of record `index`, in bytes.
    [[nodiscard]] u64 distance(u64 index, u64 offset) const {
        if (!swizzles) return index * stride + offset;
        const u64 element = offset / kScratchCell * kScratchCell;
        return (index / index_stride * stride + element) * index_stride +
               index % index_stride * kScratchCell + offset % kScratchCell;
    }
};

/// The address of each lane, or the lane's offset into LDS or scratch.
struct Addresses {
    alignas(64) u64 at[kLanes];
    u64 in_lds = 0;      ///< lanes whose `at` is an offset into LDS
    u64 in_scratch = 0;  ///< lanes whose `at` is an offset into the lane's scratch
    u64 dropped = 0;     ///< lanes outside their buffer: loads give 0, stores do nothing
};

/// Finds the address of dword `part` of each lane's data, for an access of `size` bytes. Lanes
/// outside the buffer are dropped. NUM_RECORDS counts records if the instruction has an index and
/// the buffer has a stride, else bytes.
[[maybe_unused]] void buffer_addresses(const Env& env, const Instruction& i, u32 part, u32 size,
                                       Addresses& out) {
    const BufferDescriptor buffer(env, i.src[2].value);
    const u32 soffset = env.scalar32(i.src[3]);
    const u32* offsets = env.v[i.src[0].value + (i.index_enable ? 1 : 0)].lane.data();
    const u32* indices = env.v[i.src[0].value].lane.data();
    const bool is_raw = buffer.stride == 0 || !i.index_enable;
    const u64 mask = buffer.offset_mask();
    out.dropped = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const u64 index = (i.index_enable ? u64{indices[l]} : 0) + (buffer.adds_lane ? l : 0);
        const u64 offset =
            (u64{i.offset_enable ? offsets[l] : 0} + static_cast<u32>(i.imm) + part * 4) & mask;
        const u64 distance = buffer.distance(index, offset);
        const bool outside =
            is_raw ? distance + soffset + size > buffer.records : index >= buffer.records;
        out.dropped |= u64{outside} << l;
        out.at[l] = buffer.base + soffset + distance;
    }
}

/// LDS address of a lane's dword, for an instruction without an address operand:
/// M0[15:0] + offset + 4 * lane.
[[maybe_unused]] u64 lds_of_lane(const Env& env, const Instruction& i, u32 lane) {
    return u64{env.m0() & 0xffff} + static_cast<u32>(i.imm) + lane * 4;
}

/// Writes the dwords of all active lanes to LDS, at lds_of_lane().
[[maybe_unused]] void row_to_lds(Env& env, const Instruction& i, const Row& row) {
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        write_lds(env, lds_of_lane(env, i, lane), &row.lane[lane], 4);
    }
}

// ---- scratch

/// Address of byte `offset` of a lane's scratch: the dwords of all lanes are interleaved.
[[maybe_unused]] u64 scratch_address(const Env& env, u64 offset, u32 lane) {
    const u64 base = env.pair(static_cast<u32>(ScalarReg::FlatScratch));
    return base + offset / kScratchCell * kScratchCell * kLanes + lane * kScratchCell +
           offset % kScratchCell;
}

/// The GPU address of a lane's data (of its first byte, because scratch interleaves dwords). The
/// lane's data must not be in LDS.
[[maybe_unused]] u64 address_of(const Env& env, const Addresses& a, u32 lane) {
    const bool is_scratch = ((a.in_scratch >> lane) & 1) != 0;
    return is_scratch ? scratch_address(env, a.at[lane], lane) : a.at[lane];
}

/// Splits an access to scratch at the borders of interleaved dwords. Calls move(address, bytes in
/// earlier pieces, bytes in this piece) for each piece; stops and returns false if move() returns
/// false.
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

// ---- address watches

/// Does the work of watch_hits(). Never inlined, because watches are rare.
[[maybe_unused, gnu::noinline]] u32 find_watch_hits(const Env& env, const Addresses& a, u64 lanes,
                                                    u32 size, WatchedAccess access) {
    u32 hits = 0;
    const auto check = [&](u64 va, u32 bytes) {
        hits |= env.watches->hits(env.context.vmid, access, va, bytes);
    };
    for (u64 left = lanes & ~(a.in_lds | a.dropped); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        if (((a.in_scratch >> lane) & 1) == 0) {
            check(a.at[lane], size);
            continue;
        }
        (void)for_scratch_cells(env, a.at[lane], lane, size, [&](u64 va, u32, u32 piece) {
            check(va, piece);
            return true;
        });
    }
    return hits;
}

/// The TRAPSTS bits of all watches that the lanes in `lanes` hit; each lane accesses `size` bytes.
/// LDS is not watched.
[[maybe_unused]] VGPU_INLINE u32 watch_hits(const Env& env, const Addresses& a, u64 lanes, u32 size,
                                            WatchedAccess access) {
    if (env.watches == nullptr) [[likely]]
        return 0;
    return find_watch_hits(env, a, lanes, size, access);
}

/// The outcome of an instruction after its last access. Records the watch hits in TRAPSTS. A hit
/// gives Outcome::Exception if MODE enables address watches.
[[maybe_unused]] VGPU_INLINE Outcome done_with_memory(Env& env, u32 watch_hits) {
    if ((watch_hits | u32{env.must_stop}) == 0) [[likely]]
        return Outcome::Next;
    env.wave.trapsts |= watch_hits;
    if (watch_hits != 0 && (env.wave.mode & mode::kAddressWatch) != 0) return Outcome::Exception;
    return env.must_stop ? Outcome::Yield : Outcome::Next;
}

// ---- rows

/// Loads `Count` words per lane. In memory, all words of a lane are adjacent, and the next lane's
/// words follow; row k receives word k of each lane.
template <unsigned Count> void from_memory(const std::byte* host, Row* rows) {
    if constexpr (Count == 1) {
        std::memcpy(rows[0].lane, host, sizeof rows[0].lane);
        return;
    }
    for (unsigned l = 0; l < kLanes; ++l)
        for (unsigned k = 0; k < Count; ++k)
            std::memcpy(&rows[k].lane[l], host + (l * Count + k) * 4, 4);
}

/// The inverse of from_memory(): stores `Count` VGPRs from `first` on.
template <unsigned Count> void to_memory(const Env& env, u32 first, std::byte* host) {
    if constexpr (Count == 1) {
        std::memcpy(host, env.v[first].lane.data(), sizeof(Row));
        return;
    }
    for (unsigned l = 0; l < kLanes; ++l)
        for (unsigned k = 0; k < Count; ++k)
            std::memcpy(host + (l * Count + k) * 4, &env.v[first + k].lane[l], 4);
}

/// Writes `count` loaded rows to the VGPRs from `dst` on, in the lanes whose bit in `lanes` is set.
/// A 16-bit part leaves the other half of the register unchanged.
template <Part P>
void write_back(const Env& env, u32 dst, const Row* rows, unsigned count, u64 lanes) {
    if (P == Part::Whole && lanes == ~u64{0}) {
        for (unsigned k = 0; k < count; ++k)
            std::memcpy(env.v[dst + k].lane.data(), rows[k].lane, sizeof(Row));
        return;
    }
    for (unsigned k = 0; k < count; ++k) {
        u32* to = env.v[dst + k].lane.data();
        Row merged = rows[k];
        if constexpr (P == Part::Low)
            for (unsigned l = 0; l < kLanes; ++l)
                merged.lane[l] = (to[l] & 0xffff0000) | (merged.lane[l] & 0xffff);
        if constexpr (P == Part::High)
            for (unsigned l = 0; l < kLanes; ++l)
                merged.lane[l] = (to[l] & 0xffff) | (merged.lane[l] << 16);
        blend_lanes(to, merged.lane, lanes);
    }
}

// ---- atomics

/// The struct of an atomic's row. value() is the new value in memory; d is the old value there, a
/// and b are the data operands.
#define VGPU_ATOMIC(n, type, expression, ...)                                         \
    struct n {                                                                        \
        using T = type;                                                               \
        static constexpr std::string_view kName = #n;                                 \
        static constexpr Handler kHandler = &__VA_ARGS__;                             \
        VGPU_INLINE static T value([[maybe_unused]] T d, T a, [[maybe_unused]] T b) { \
            return static_cast<T>(expression);                                        \
        }                                                                             \
    };

/// The data operand of an atomic in one lane; a T of 64 bits is in two VGPRs.
template <class T> T data_of(const Env& env, u32 first, u32 lane) {
    if constexpr (sizeof(T) == 8)
        return std::bit_cast<T>(u64{env.v[first].lane[lane]} |
                                (u64{env.v[first + 1].lane[lane]} << 32));
    else
        return std::bit_cast<T>(env.v[first].lane[lane]);
}

/// Stores the old value of memory in rows that write_back() will write to VGPRs.
template <class T> void store_old(Row* rows, u32 lane, T old) {
    if constexpr (sizeof(T) == 8) {
        const u64 bits = std::bit_cast<u64>(old);
        rows[0].lane[lane] = static_cast<u32>(bits);
        rows[1].lane[lane] = static_cast<u32>(bits >> 32);
    } else {
        rows[0].lane[lane] = std::bit_cast<u32>(old);
    }
}

/// Replaces the T at `host` by M::value(); returns the old value. Uses the host's atomics, because
/// other threads and the guest may access the memory, too. `host` is aligned to T.
template <class M, class T> T exchange_at(std::byte* host, T a, T b) {
    using Bits = std::conditional_t<sizeof(T) == 8, u64, u32>;
    std::atomic_ref<Bits> cell(*typed<Bits>(host));
    Bits old = cell.load(std::memory_order_relaxed);
    for (;;) {
        const T d = std::bit_cast<T>(old);
        if (cell.compare_exchange_weak(old, std::bit_cast<Bits>(M::value(d, a, b)))) return d;
    }
}

/// Executes an atomic in global memory for one lane; false if the access fails. If the page does
/// not support atomics, memory does not change and `old` is all ones.
template <class M, class T> bool atomic_global(Env& env, u64 va, T a, T b, T& old) {
    mem::Port& port = env.context.port;
    if (va % sizeof(T) == 0) {
        // The page must permit both reads and writes.
        std::byte* const host = port.at(GpuVa{va}, Access::Read) != nullptr
                                    ? port.at(GpuVa{va}, Access::Write)
                                    : nullptr;
        if (host != nullptr) {
            old = exchange_at<M, T>(host, a, b);
            return true;
        }
        if (port.has_fault()) return false;
    }
    if (!port.supports_atomics(GpuVa{va})) {
        std::memset(&old, 0xff, sizeof old);
        return true;
    }
    // Memory without a host address, or misaligned: atomic among the waves of this thread only.
    if (!read_global(env, va, &old, sizeof old)) return false;
    const T value = M::value(old, a, b);
    return write_global(env, va, &value, sizeof value);
}

}  // namespace

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
