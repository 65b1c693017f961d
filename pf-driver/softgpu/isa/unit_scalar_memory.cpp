// SPDX-License-Identifier: MIT
//
// Execute unit: scalar memory and clocks. Each variant (decode.h) has its own build of this file.
#include <chrono>

#include "pf-driver/softgpu/isa/memory_access.h"

namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT {

namespace {

// ---- scalar memory

/// The constant offset, in bytes, plus the offset in a register, in units of `unit` bytes.
u64 scalar_offset(const Env& env, const Instruction& i, u64 unit = 1) {
    const u64 extra = i.src[1].kind == OperandKind::None ? 0 : env.scalar32(i.src[1]);
    return static_cast<u64>(i64{i.imm}) + extra * unit;
}

/// The address of an access, rounded down to a multiple of 4. `Unit` is the unit of the offset
/// register in bytes: 64 for scalar scratch, else 1.
template <u64 Unit = 1> u64 scalar_address(const Env& env, const Instruction& i) {
    return (env.scalar64(i.src[0]) + scalar_offset(env, i, Unit)) & ~u64{3};
}

constexpr u64 kScratchUnit = 64;

template <u32 Count, u64 Unit = 1> Outcome scalar_load(Env& env, const Instruction& i) {
    const u64 va = scalar_address<Unit>(env, i);
    u32 words[Count];
    if (!read_global(env, va, words, sizeof words)) return fault(env, 0, va, Access::Read);
    std::memcpy(env.s + i.dst, words, sizeof words);
    return Outcome::Next;
}

/// Number of bytes from `offset` to the end of the buffer; 0 if `offset` is outside.
u64 bytes_inside(const BufferDescriptor& buffer, u64 offset) {
    const u64 size = buffer.stride == 0 ? buffer.records : u64{buffer.records} * buffer.stride;
    return offset >= size ? 0 : size - offset;
}

/// A dword outside the buffer gives 0, even if the load begins inside.
template <u32 Count> Outcome scalar_buffer_load(Env& env, const Instruction& i) {
    const BufferDescriptor buffer(env, i.src[0].value);
    const u64 offset = scalar_offset(env, i) & ~u64{3};
    const u64 inside = bytes_inside(buffer, offset);
    u32 words[Count] = {};
    const u32 size = static_cast<u32>(std::min<u64>(sizeof words, inside & ~u64{3}));
    if (size != 0 && !read_global(env, buffer.base + offset, words, size))
        return fault(env, 0, buffer.base + offset, Access::Read);
    std::memcpy(env.s + i.dst, words, sizeof words);
    return Outcome::Next;
}

template <u32 Count, u64 Unit = 1> Outcome scalar_store(Env& env, const Instruction& i) {
    const u64 va = scalar_address<Unit>(env, i);
    if (!write_global(env, va, env.s + i.dst, Count * 4)) return fault(env, 0, va, Access::Write);
    return Outcome::Next;
}

template <u32 Count> Outcome scalar_buffer_store(Env& env, const Instruction& i) {
    const BufferDescriptor buffer(env, i.src[0].value);
    const u64 offset = scalar_offset(env, i) & ~u64{3};
    const u32 size =
        static_cast<u32>(std::min<u64>(Count * 4, bytes_inside(buffer, offset) & ~u64{3}));
    if (size != 0 && !write_global(env, buffer.base + offset, env.s + i.dst, size))
        return fault(env, 0, buffer.base + offset, Access::Write);
    return Outcome::Next;
}

template <class M> Outcome scalar_atomic_at(Env& env, const Instruction& i, u64 va) {
    using T = typename M::T;
    constexpr u32 words = sizeof(T) / 4;
    T a{};
    T b{};
    std::memcpy(&a, env.s + i.dst, sizeof a);
    if (info(i.op).data_operands > 1) std::memcpy(&b, env.s + i.dst + words, sizeof b);
    T old{};
    if (!atomic_global<M, T>(env, va, a, b, old)) return fault(env, 0, va, Access::Write);
    if (i.returns) std::memcpy(env.s + i.dst, &old, sizeof old);
    return Outcome::Next;
}

template <class M> Outcome scalar_atomic(Env& env, const Instruction& i) {
    return scalar_atomic_at<M>(env, i, scalar_address<>(env, i));
}

/// If the memory operand is not completely inside the buffer, memory does not change, and the
/// atomic returns 0.
template <class M> Outcome scalar_buffer_atomic(Env& env, const Instruction& i) {
    using T = typename M::T;
    const BufferDescriptor buffer(env, i.src[0].value);
    const u64 offset = scalar_offset(env, i) & ~u64{3};
    if (bytes_inside(buffer, offset) >= sizeof(T))
        return scalar_atomic_at<M>(env, i, buffer.base + offset);
    if (i.returns) std::memset(env.s + i.dst, 0, sizeof(T));
    return Outcome::Next;
}

/// The time of the context's clock, in ticks of 1/`hz` seconds. Converts whole seconds separately,
/// so that the product does not overflow.
u64 ticks(const Env& env, u64 hz) {
    const auto now = static_cast<u64>(env.context.clock.now().count());
    constexpr u64 kPerSecond = 1'000'000'000;
    return now / kPerSecond * hz + now % kPerSecond * hz / kPerSecond;
}

// The clocks of s_memtime and s_memrealtime belong to the device and run while the wave is off the
// engine, as on hardware.
Outcome do_memtime(Env& env, const Instruction& i) {
    env.set_pair(i.dst, ticks(env, env.context.core_hz));
    return Outcome::Next;
}

Outcome do_memrealtime(Env& env, const Instruction& i) {
    env.set_pair(i.dst, ticks(env, env.context.reference_hz));
    return Outcome::Next;
}

// ---- the rows of ops/*.def: a struct for each (see VGPU_HANDLER in env.h)

#define SML(n, code, dwords) VGPU_HANDLER(n, scalar_load<dwords>)
#define SMB(n, code, dwords) VGPU_HANDLER(n, scalar_buffer_load<dwords>)
#define SMS(n, code, dwords) VGPU_HANDLER(n, scalar_store<dwords>)
#define SMT(n, code, dwords) VGPU_HANDLER(n, scalar_buffer_store<dwords>)
#define SMC(n, code, dwords) VGPU_HANDLER(n, scalar_load<dwords, kScratchUnit>)
#define SMD(n, code, dwords) VGPU_HANDLER(n, scalar_store<dwords, kScratchUnit>)
#define SMP(n, code, f) VGPU_HANDLER(n, f)
#define SMBP(n, code, f) VGPU_HANDLER(n, f)
#define SMA(n, code, encoding, t, v) VGPU_ATOMIC(n, t, v, scalar_atomic<n>)
#define SMBA(n, code, encoding, t, v) VGPU_ATOMIC(n, t, v, scalar_buffer_atomic<n>)
#define SMX(n, code, dwords, f) VGPU_HANDLER(n, f)
#define ROW(kind, ...) kind(__VA_ARGS__)
#include "pf-driver/softgpu/isa/ops/smem.def"
#undef ROW

}  // namespace

void fill_scalar_memory(HandlerTable& table) {
#define ROW VGPU_SET
#include "pf-driver/softgpu/isa/ops/smem.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa::VGPU_ISA_VARIANT
