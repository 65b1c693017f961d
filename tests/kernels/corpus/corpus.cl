// SPDX-License-Identifier: MIT
// A program of the corpus as a kernel: its phases, with a barrier behind each.
#include "../kernel.h"
#include "language.h"
#include PROGRAM

kernel void KERNEL(global const uint* in, global uint* out) {
    local uint shared[LOCAL_WORDS];
    const uint id = global_x();
    for (uint phase = 0; phase < PHASES; ++phase) {
        item(phase, id, local_x(), shared, in, out + id * RESULTS);
        group_barrier();
    }
}
