// SPDX-License-Identifier: MIT
// Every work-item takes part in counters in global memory and in LDS.
// totals: 0 sum, 1 smallest, 2 largest, 3 or, 4 xor, 5 items seen through LDS; wide: 64-bit sum.
#include "kernel.h"

kernel void atomics(global uint* totals, global ulong* wide, uint n) {
    local uint in_group;
    const uint t = global_x();
    if (local_x() == 0) in_group = 0;
    group_barrier();
    if (t < n) {
        __opencl_atomic_fetch_add((global atomic_uint*)&totals[0], t, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE);
        __opencl_atomic_fetch_min((global atomic_uint*)&totals[1], t + 7, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE);
        __opencl_atomic_fetch_max((global atomic_uint*)&totals[2], t, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE);
        __opencl_atomic_fetch_or((global atomic_uint*)&totals[3], 1u << (t & 31), __ATOMIC_RELAXED,
                                 __OPENCL_MEMORY_SCOPE_DEVICE);
        __opencl_atomic_fetch_xor((global atomic_uint*)&totals[4], t * 31, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE);
        __opencl_atomic_fetch_add((local atomic_uint*)&in_group, 1, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_WORK_GROUP);
        ulong seen = *(global volatile ulong*)wide;
        while (!__opencl_atomic_compare_exchange_strong(
            (global atomic_ulong*)wide, &seen, seen + ((ulong)t << 8), __ATOMIC_RELAXED,
            __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE)) {
        }
    }
    group_barrier();
    if (local_x() == 0)
        __opencl_atomic_fetch_add((global atomic_uint*)&totals[5], in_group, __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE);
}
