// SPDX-License-Identifier: MIT
//
// Execute unit: local data share (LDS). Each variant (decode.h) has its own build of this file.
// Outside the LDS of the work-group, loads give 0 and stores do nothing.
#include "pf-driver/softgpu/isa/lane_groups.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

// ---- local data share

/// The sum wraps at 32 bits, so a negative address plus an offset may be valid.
VGPU_INLINE u64 lds_offset(u32 address, u32 offset) {
    return address + offset;
}

/// True if all lanes are active, each lane's address is `step` bytes after that of the previous
/// lane, and the data of all lanes is inside the group's LDS.
bool is_lds_row(const Env& env, const u32* address, u32 offset, u32 step) {
    if (env.exec() != ~u64{0}) return false;
    const u32 first = address[0];
    if (lds_offset(first, offset) + u64{step} * kLanes > env.lds_bytes) return false;
    u32 wrong = 0;
    for (unsigned l = 0; l < kLanes; ++l) wrong |= address[l] ^ (first + l * step);
    return wrong == 0;
}

/// True if `size` bytes at the address of every lane are in LDS, even for inactive lanes, so that
/// loops over all lanes need no check.
bool all_inside(const Env& env, const u32* address, u32 offset, u32 size) {
    if (size > env.lds_bytes) return false;
    u32 highest = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const u32 sum = address[l] + offset;
        highest = sum > highest ? sum : highest;
    }
    return highest <= env.lds_bytes - size;
}

VGPU_INLINE GroupOffsets lds_offsets(const u32* address, u32 offset) {
    GroupOffsets offsets;
    for (unsigned l = 0; l < kGroup; ++l) offsets.at[l] = address[l] + offset;
    find_pattern(offsets);
    return offsets;
}

/// Loads `Count` words from the address of every lane; requires all_inside().
template <unsigned Count>
void gather_lds(const Env& env, const u32* address, u32 offset, Row* rows) {
    for (unsigned first = 0; first < kLanes; first += kGroup) {
        const GroupOffsets offsets = lds_offsets(address + first, offset);
        for (unsigned k = 0; k < Count; ++k)
            gather_words(env.lds + 4 * k, offsets, rows[k].lane + first);
    }
}

/// Writes `Count` words of every active lane, in lane order; requires all_inside().
template <unsigned Count>
void scatter_lds(const Env& env, const u32* address, u32 offset, const VgprRow* source) {
    for (unsigned first = 0; first < kLanes; first += kGroup) {
        const u32 on = static_cast<u32>(env.exec() >> first) & kWholeGroup;
        const GroupOffsets offsets = lds_offsets(address + first, offset);
        if (Count == 1 && offsets.is_consecutive && on == kWholeGroup) {
            std::memcpy(env.lds + offsets.at[0], source->lane.data() + first, kGroup * 4);
            continue;
        }
        for (unsigned l = 0; l < kGroup; ++l)
            for (unsigned k = 0; k < Count && ((on >> l) & 1) != 0; ++k)
                std::memcpy(env.lds + offsets.at[l] + 4 * k, &source[k].lane[first + l], 4);
    }
}

/// Has three paths, the fastest first: consecutive words; words anywhere inside LDS; lane by lane
/// with checks of the range.
template <class T, unsigned Count, Part P> Outcome lds_read(Env& env, const Instruction& i) {
    const u32* address = env.v[i.src[0].value].lane.data();
    const u32 offset = static_cast<u32>(i.imm);
    Row rows[Count];
    if (sizeof(T) == 4 && is_lds_row(env, address, offset, Count * 4)) {
        from_memory<Count>(env.lds + lds_offset(address[0], offset), rows);
    } else if (sizeof(T) == 4 && all_inside(env, address, offset, Count * 4)) {
        gather_lds<Count>(env, address, offset, rows);
    } else {
        for (u64 left = env.exec(); left != 0; left &= left - 1) {
            const u32 lane = static_cast<u32>(std::countr_zero(left));
            T words[Count];
            read_lds(env, lds_offset(address[lane], offset), words, sizeof words);
            for (unsigned k = 0; k < Count; ++k) rows[k].lane[lane] = static_cast<u32>(words[k]);
        }
    }
    write_back<P>(env, i.dst, rows, Count, env.exec());
    return Outcome::Next;
}

template <class T, unsigned Count, Part P> Outcome lds_write(Env& env, const Instruction& i) {
    const u32* address = env.v[i.src[0].value].lane.data();
    const u32 offset = static_cast<u32>(i.imm);
    const u32 first = i.src[1].value;
    if (sizeof(T) == 4 && is_lds_row(env, address, offset, Count * 4)) {
        to_memory<Count>(env, first, env.lds + lds_offset(address[0], offset));
        return Outcome::Next;
    }
    if (sizeof(T) == 4 && all_inside(env, address, offset, Count * 4)) {
        scatter_lds<Count>(env, address, offset, env.v + first);
        return Outcome::Next;
    }
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        T words[Count];
        for (unsigned k = 0; k < Count; ++k) {
            const u32 word = env.v[first + k].lane[lane];
            words[k] = static_cast<T>(P == Part::High ? word >> 16 : word);
        }
        write_lds(env, lds_offset(address[lane], offset), words, sizeof words);
    }
    return Outcome::Next;
}

u32 first_offset(const Instruction& i) {
    return static_cast<u32>(i.imm) & 0xff;
}
u32 second_offset(const Instruction& i) {
    return (static_cast<u32>(i.imm) >> 8) & 0xff;
}

/// Reads two values per lane. The instruction has an offset of 8 bits for each, in units of Stride
/// bytes (DS_READ2, DS_READ2ST64).
template <class T, u32 Stride> Outcome lds_read2(Env& env, const Instruction& i) {
    constexpr u32 words = sizeof(T) / 4;
    const u32* address = env.v[i.src[0].value].lane.data();
    Row rows[2 * words];
    const u32 one = first_offset(i) * Stride;
    const u32 two = second_offset(i) * Stride;
    if (all_inside(env, address, one, sizeof(T)) && all_inside(env, address, two, sizeof(T))) {
        gather_lds<words>(env, address, one, rows);
        gather_lds<words>(env, address, two, rows + words);
        write_back<Part::Whole>(env, i.dst, rows, 2 * words, env.exec());
        return Outcome::Next;
    }
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        u32 part[2 * words];
        read_lds(env, lds_offset(address[lane], one), part, sizeof(T));
        read_lds(env, lds_offset(address[lane], two), part + words, sizeof(T));
        for (u32 k = 0; k < 2 * words; ++k) rows[k].lane[lane] = part[k];
    }
    write_back<Part::Whole>(env, i.dst, rows, 2 * words, env.exec());
    return Outcome::Next;
}

template <class T, u32 Stride> Outcome lds_write2(Env& env, const Instruction& i) {
    const u32* address = env.v[i.src[0].value].lane.data();
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const T one = data_of<T>(env, i.src[1].value, lane);
        const T two = data_of<T>(env, i.src[2].value, lane);
        write_lds(env, lds_offset(address[lane], first_offset(i) * Stride), &one, sizeof one);
        write_lds(env, lds_offset(address[lane], second_offset(i) * Stride), &two, sizeof two);
    }
    return Outcome::Next;
}

/// The value that an atomic writes to LDS. Float atomics follow MODE's denormal bits, but always
/// round to nearest (Mesa, aco_insert_fp_mode.cpp). DS_CMPST compares by these rules, but stores
/// its operand unchanged.
template <class M, class T = typename M::T>
T lds_value(const Env& env, T d, T a, [[maybe_unused]] T b) {
    if constexpr (!std::is_floating_point_v<T>) {
        return M::value(d, a, b);
    } else {
        constexpr u32 shift = sizeof(T) == 4 ? mode::kDenormSingleShift : mode::kDenormDoubleShift;
        const bool flushes_in = ((env.wave.mode >> shift) & 1) == 0;
        const bool flushes_out = ((env.wave.mode >> shift) & 2) == 0;
        const T left = flushes_in ? flushed(d) : d;
        const T right = flushes_in ? flushed(a) : a;
        if constexpr (M::kName.starts_with("ds_cmpst")) return left == right ? b : d;
        const T value = M::value(left, right, b);
        return flushes_out ? flushed(value) : value;
    }
}

enum class Returns { Nothing, Old };

/// Waves of a group take turns in one thread, so a read and then a write need no host atomic. Lanes
/// are processed in order: each lane reads the results of the lanes before it.
template <class M, Returns R> Outcome lds_atomic(Env& env, const Instruction& i) {
    using T = typename M::T;
    constexpr u32 words = sizeof(T) / 4;
    const u32* address = env.v[i.src[0].value].lane.data();
    const u32 offset = static_cast<u32>(i.imm);
    Row rows[words];
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        T old{};
        read_lds(env, lds_offset(address[lane], offset), &old, sizeof old);
        const T value = lds_value<M>(env, old, data_of<T>(env, i.src[1].value, lane),
                                     data_of<T>(env, i.src[2].value, lane));
        write_lds(env, lds_offset(address[lane], offset), &value, sizeof value);
        store_old<T>(rows, lane, old);
    }
    if constexpr (R == Returns::Old) write_back<Part::Whole>(env, i.dst, rows, words, env.exec());
    return Outcome::Next;
}

/// The two addresses of a DS_*_SRC2 operation. If bit 15 of the instruction's offset is clear, the
/// lane's address is the first address, and the other bits of the offset hold the distance from
/// first to second. If bit 15 is set, the upper 15 bits of the lane's address hold the distance,
/// and the other bits the first address. Distances are signed, in dwords (Vega ISA manual,
/// DS_ADD_SRC2_U32).
struct TwoAddresses {
    u64 first;
    u64 second;
};

TwoAddresses two_addresses(const Instruction& i, u32 address) {
    constexpr u32 from_address = 0x8000, address_bits = 17;
    const u32 code = static_cast<u32>(i.imm);
    if ((code & from_address) == 0) {
        const u32 distance = static_cast<u32>(enc::sign_extend(code, 15));
        return {address, address + 4 * distance};
    }
    const u32 first = address & ((1u << address_bits) - 1);
    const u32 distance = static_cast<u32>(static_cast<i32>(address) >> address_bits);
    return {first, first + 4 * distance};
}

template <class M> Outcome lds_two_addresses(Env& env, const Instruction& i) {
    using T = typename M::T;
    const u32* address = env.v[i.src[0].value].lane.data();
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const TwoAddresses addresses = two_addresses(i, address[lane]);
        T d{};
        T a{};
        read_lds(env, addresses.first, &d, sizeof d);
        read_lds(env, addresses.second, &a, sizeof a);
        const T value = lds_value<M>(env, d, a, T{});
        write_lds(env, addresses.first, &value, sizeof value);
    }
    return Outcome::Next;
}

/// Reads the values at two addresses, then writes a new value to each; the result is the old
/// values.
template <class T, u32 Stride> Outcome lds_exchange2(Env& env, const Instruction& i) {
    constexpr u32 words = sizeof(T) / 4;
    const u32* address = env.v[i.src[0].value].lane.data();
    Row rows[2 * words];
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const u64 offsets[2] = {lds_offset(address[lane], first_offset(i) * Stride),
                                lds_offset(address[lane], second_offset(i) * Stride)};
        for (u32 k = 0; k < 2; ++k) {
            T old{};
            read_lds(env, offsets[k], &old, sizeof old);
            store_old<T>(rows + k * words, lane, old);
        }
        for (u32 k = 0; k < 2; ++k) {
            const T value = data_of<T>(env, i.src[1 + k].value, lane);
            write_lds(env, offsets[k], &value, sizeof value);
        }
    }
    write_back<Part::Whole>(env, i.dst, rows, 2 * words, env.exec());
    return Outcome::Next;
}

/// Each active lane sends its value to the lane that its address selects. If several lanes send to
/// the same lane, the value of the highest sender stays. A lane to which no lane sends gets 0.
Outcome do_ds_permute(Env& env, const Instruction& i) {
    Row out;
    fill(out, 0);
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        const u32 to = (env.v[i.src[0].value].lane[lane] + static_cast<u32>(i.imm)) / 4 % kLanes;
        out.lane[to] = env.v[i.src[1].value].lane[lane];
    }
    write_back<Part::Whole>(env, i.dst, &out, 1, env.exec());
    return Outcome::Next;
}

/// Each active lane gets the value of lane source(lane), or 0 if the source lane is inactive.
template <class Source>
Outcome fetch_from_lanes(const Env& env, const Instruction& i, const Operand& data, Source source) {
    Row out;
    const u64 exec = env.exec();
    for (unsigned l = 0; l < kLanes; ++l) {
        const u32 from = source(l);
        out.lane[l] = ((exec >> from) & 1) != 0 ? env.v[data.value].lane[from] : 0;
    }
    write_back<Part::Whole>(env, i.dst, &out, 1, exec);
    return Outcome::Next;
}

Outcome do_ds_bpermute(Env& env, const Instruction& i) {
    const u32* address = env.v[i.src[0].value].lane.data();
    return fetch_from_lanes(env, i, i.src[1], [&](u32 lane) {
        return (address[lane] + static_cast<u32>(i.imm)) / 4 % kLanes;
    });
}

/// The upper bits of a DS_SWIZZLE pattern, which choose its mode.
constexpr u32 kSwizzleQuad = 0x8000, kSwizzleRotate = 0xc000, kSwizzleFourier = 0xe000;

/// The lane from which `lane` reads in the mode for FFTs, within 32 lanes. If `mask` covers the
/// highest bits of the five-bit lane number, these bits stay, and the order of the other bits is
/// reversed.
u32 reversed_outside(u32 mask, u32 lane) {
    u32 reversed = 0;
    for (u32 bit = 0; bit < 5; ++bit) reversed |= ((lane >> bit) & 1) << (4 - bit);
    return (reversed >> std::popcount(mask)) | (lane & 31 & mask);
}

/// The lane whose value `lane` gets. `pattern` has four modes: reverse the bits of the lane number,
/// rotate within 32 lanes, permute within quads, or apply masks (and, or, xor) to the lane number
/// (Vega ISA manual, DS_SWIZZLE_B32).
u32 swizzle_source(u32 pattern, u32 lane) {
    if (pattern >= kSwizzleFourier) return (lane & 32) | reversed_outside(pattern & 0x1f, lane);
    if ((pattern & 0xe000) == kSwizzleRotate) {
        const u32 keep = pattern & 0x1f;
        const u32 by = (pattern >> 5) & 0x1f;
        const u32 step = (pattern & 0x400) != 0 ? 32 - by : by;
        const u32 in_group = lane & 31;
        return (lane & 32) | (in_group & keep) | ((in_group + step) & 31 & ~keep);
    }
    if ((pattern & kSwizzleQuad) != 0) return (lane & ~3u) | ((pattern >> (2 * (lane & 3))) & 3);
    const u32 and_mask = pattern & 0x1f;
    const u32 or_mask = (pattern >> 5) & 0x1f;
    const u32 xor_mask = (pattern >> 10) & 0x1f;
    return (lane & 32) | ((((lane & 31) & and_mask) | or_mask) ^ xor_mask);
}

Outcome do_ds_swizzle(Env& env, const Instruction& i) {
    return fetch_from_lanes(env, i, i.src[0], [&](u32 lane) {
        return swizzle_source(static_cast<u32>(i.imm) & 0xffff, lane);
    });
}

Outcome do_ds_write_addtid(Env& env, const Instruction& i) {
    for (u64 left = env.exec(); left != 0; left &= left - 1) {
        const u32 lane = static_cast<u32>(std::countr_zero(left));
        write_lds(env, lds_of_lane(env, i, lane), &env.v[i.src[1].value].lane[lane], 4);
    }
    return Outcome::Next;
}

Outcome do_ds_read_addtid(Env& env, const Instruction& i) {
    Row out;
    for (unsigned l = 0; l < kLanes; ++l) read_lds(env, lds_of_lane(env, i, l), &out.lane[l], 4);
    write_back<Part::Whole>(env, i.dst, &out, 1, env.exec());
    return Outcome::Next;
}

/// Adds `change` to the counter at M0[15:0] + offset; all active lanes receive the old value.
Outcome add_to_counter(Env& env, const Instruction& i, u32 change) {
    const u64 offset = u64{env.m0() & 0xffff} + static_cast<u32>(i.imm);
    u32 old = 0;
    read_lds(env, offset, &old, 4);
    const u32 value = old + change;
    write_lds(env, offset, &value, 4);
    Row out;
    fill(out, old);
    write_back<Part::Whole>(env, i.dst, &out, 1, env.exec());
    return Outcome::Next;
}

Outcome do_ds_append(Env& env, const Instruction& i) {
    return add_to_counter(env, i, popcount(env.exec()));
}
Outcome do_ds_consume(Env& env, const Instruction& i) {
    return add_to_counter(env, i, 0u - popcount(env.exec()));
}

// ---- the rows of ops/*.def: a struct for each (see VGPU_HANDLER in env.h)

#define DL(n, code, t, count, part) VGPU_HANDLER(n, lds_read<t, count, Part::part>)
#define DS2L(n, code, t, stride) VGPU_HANDLER(n, lds_read2<t, stride>)
#define DW(n, code, t, count, part) VGPU_HANDLER(n, lds_write<t, count, Part::part>)
#define DS2W(n, code, t, stride) VGPU_HANDLER(n, lds_write2<t, stride>)
#define DA(n, code, t, returns, v) VGPU_ATOMIC(n, t, v, lds_atomic<n, Returns::returns>)
#define DA2(n, code, t, v) VGPU_ATOMIC(n, t, v, lds_two_addresses<n>)
#define DX2(n, code, t, stride) VGPU_HANDLER(n, lds_exchange2<t, stride>)
#define DX(n, code, d, a, f) VGPU_HANDLER(n, f)
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/ds.def"
#undef ROW

}  // namespace

void fill_lds(HandlerTable& table) {
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/ds.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
