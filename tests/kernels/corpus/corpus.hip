// SPDX-License-Identifier: MIT
// A program of the corpus as a kernel of HIP: all memory is generic, so LDS and scratch are reached
// through their apertures wherever the compiler does not see what a pointer points to.
#pragma clang force_cuda_host_device begin
#include "language.h"
#include PROGRAM
#pragma clang force_cuda_host_device end

extern "C" __attribute__((__global__)) void KERNEL(const uint* in, uint* out) {
    __attribute__((__shared__)) static uint shared[LOCAL_WORDS];
    const uint in_group = __builtin_amdgcn_workitem_id_x();
    const uint id = __builtin_amdgcn_workgroup_id_x() * GROUP + in_group;
    for (uint phase = 0; phase < PHASES; ++phase) {
        item(phase, id, in_group, shared, in, out + id * RESULTS);
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    }
}
