// SPDX-License-Identifier: MIT
//
// What the programs of the corpus are written in: a language that is OpenCL C and HIP for the GPU,
// and C++ for the oracle. A program is a header that defines PHASES, how many parts it has with a
// barrier between, LOCAL_WORDS, and
//     static void item(uint phase, uint id, uint in_group, local uint* shared,
//                      global const uint* in, global uint* out)
// for the work-item `id`, which is `in_group` in its group of GROUP. Input are WORDS random words;
// every item may write RESULTS words of its own.
#pragma once

#define GROUP 64
#define WORDS 4096
#define RESULTS 4

#ifdef __OPENCL_C_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define AS_FLOAT(x) __builtin_astype((uint)(x), float)
#define AS_UINT(x) __builtin_astype((float)(x), uint)
#define AS_DOUBLE(x) __builtin_astype((ulong)(x), double)
#define AS_ULONG(x) __builtin_astype((double)(x), ulong)
#define AS_HALF(x) __builtin_astype((ushort)(x), half)
#define HALF_BITS(x) ((uint)__builtin_astype((half)(x), ushort))
static inline void local_atomic_add(local uint* cell, uint value) {
    __opencl_atomic_fetch_add((local atomic_uint*)cell, value, __ATOMIC_RELAXED,
                              __OPENCL_MEMORY_SCOPE_WORK_GROUP);
}
static inline void local_atomic_max(local uint* cell, uint value) {
    __opencl_atomic_fetch_max((local atomic_uint*)cell, value, __ATOMIC_RELAXED,
                              __OPENCL_MEMORY_SCOPE_WORK_GROUP);
}
static inline void local_atomic_xor(local uint* cell, uint value) {
    __opencl_atomic_fetch_xor((local atomic_uint*)cell, value, __ATOMIC_RELAXED,
                              __OPENCL_MEMORY_SCOPE_WORK_GROUP);
}
#elif defined(__HIP__)
#define global
#define local
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
#define AS_FLOAT(x) __builtin_bit_cast(float, (uint)(x))
#define AS_UINT(x) __builtin_bit_cast(uint, (float)(x))
#define AS_DOUBLE(x) __builtin_bit_cast(double, (ulong)(x))
#define AS_ULONG(x) __builtin_bit_cast(ulong, (double)(x))
#define AS_HALF(x) __builtin_bit_cast(half, (ushort)(x))
#define HALF_BITS(x) ((uint) __builtin_bit_cast(ushort, (half)(x)))
static inline void local_atomic_add(uint* cell, uint value) {
    __atomic_fetch_add(cell, value, __ATOMIC_RELAXED);
}
static inline void local_atomic_max(uint* cell, uint value) {
    __atomic_fetch_max(cell, value, __ATOMIC_RELAXED);
}
static inline void local_atomic_xor(uint* cell, uint value) {
    __atomic_fetch_xor(cell, value, __ATOMIC_RELAXED);
}
#endif

/// A number of [1, 2) from random bits.
static inline float unit_float(uint bits) {
    return AS_FLOAT(0x3f800000u | (bits >> 9));
}
/// A number of [-4, 4).
static inline float small_float(uint bits) {
    return (unit_float(bits) - 1.5f) * 8.0f;
}
static inline double small_double(uint high, uint low) {
    return (AS_DOUBLE(0x3ff0000000000000ul | ((ulong)(high & 0xfffff) << 32) | low) - 1.5) * 8.0;
}
/// 1 to 2 in steps of 1/1024, with a random sign.
static inline uint small_half_bits(uint bits) {
    return 0x3c00u | (bits & 0x83ffu);
}
static inline uint rotated(uint x, uint by) {
    return (x << by) | (x >> (32 - by));
}
