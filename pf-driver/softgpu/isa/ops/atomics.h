// SPDX-License-Identifier: MIT
//
// The atomics of flat, global, buffer and scalar memory, as rows for memory.def and smem.def:
// ROW(kind, mnemonic, opcode, encoding, type, value). `value` is the new value in memory; d is the
// old value in memory, a the data operand, b the comparand.
#pragma once

/// Two rows: the atomic on 32 bits, and on 64 bits with an opcode that is greater by 32.
#define VGPU_ATOMIC_ROWS(kind, encoding, mnemonic, opcode, t, value) \
    ROW(kind, mnemonic, opcode, encoding, t##32, value)              \
    ROW(kind, mnemonic##_x2, (opcode) + 32, encoding, t##64, value)

/// The rows of all atomics of one encoding. The opcode of the first atomic, swap, is `first`.
#define VGPU_ALL_ATOMICS(kind, encoding, prefix, first)                                    \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_swap, first, u, a)                           \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_cmpswap, (first) + 1, u, d == b ? a : d)     \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_add, (first) + 2, u, d + a)                  \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_sub, (first) + 3, u, d - a)                  \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_smin, (first) + 4, i, d < a ? d : a)         \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_umin, (first) + 5, u, d < a ? d : a)         \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_smax, (first) + 6, i, d > a ? d : a)         \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_umax, (first) + 7, u, d > a ? d : a)         \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_and, (first) + 8, u, d & a)                  \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_or, (first) + 9, u, d | a)                   \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_xor, (first) + 10, u, d ^ a)                 \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_inc, (first) + 11, u, d >= a ? T{0} : d + 1) \
    VGPU_ATOMIC_ROWS(kind, encoding, prefix##_dec, (first) + 12, u, d == 0 || d > a ? a : d - 1)
