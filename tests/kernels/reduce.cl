// SPDX-License-Identifier: MIT
// One sum a group of 256: each work-item adds `per_item` words, then a tree of sums in LDS.
#include "kernel.h"

#define GROUP 256

kernel void reduce(global const uint* in, global uint* sums, uint per_item) {
    local uint cell[GROUP];
    const uint x = local_x();
    const uint first = group_x() * GROUP * per_item + x;
    uint sum = 0;
    for (uint k = 0; k < per_item; ++k) sum += in[first + k * GROUP];
    cell[x] = sum;
    group_barrier();
    for (uint width = GROUP / 2; width != 0; width /= 2) {
        if (x < width) cell[x] += cell[x + width];
        group_barrier();
    }
    if (x == 0) sums[group_x()] = cell[0];
}
