// SPDX-License-Identifier: MIT
// Every group counts itself in, waits for the whole grid, and looks whether all are there; round
// after round. What a cooperative launch makes of a grid barrier on gfx900: global wave sync.
#include "kernel.h"

kernel void grid_meet(global volatile uint* arrived, global uint* complete, uint groups,
                      uint rounds) {
    uint rounds_complete = 0;
    for (uint round = 0; round < rounds; ++round) {
        __builtin_amdgcn_s_barrier();
        if (local_x() == 0) {
            __opencl_atomic_fetch_add((global atomic_uint*)&arrived[round], 1, memory_order_seq_cst,
                                      memory_scope_device);
            __builtin_amdgcn_ds_gws_barrier(groups - 1, 0);
        }
        __builtin_amdgcn_s_barrier();
        rounds_complete += arrived[round] == groups ? 1 : 0;
    }
    if (local_x() == 0) complete[group_x()] = rounds_complete;
}
