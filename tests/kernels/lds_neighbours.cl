// SPDX-License-Identifier: MIT
// Reverses the numbers of a group of 256 through LDS, then adds the right-hand neighbour.
#include "kernel.h"

#define GROUP 256

kernel void lds_neighbours(global const uint* in, global uint* out) {
    local uint cell[GROUP];
    const uint x = local_x();
    cell[GROUP - 1 - x] = in[group_x() * GROUP + x];
    group_barrier();
    const uint mine = cell[x];
    const uint next = cell[(x + 1) % GROUP];
    out[group_x() * GROUP + x] = mine + next;
}
