// SPDX-License-Identifier: MIT
// c = a * b, square f32 matrices whose side is a multiple of 16, one tile per group in LDS.
#include "kernel.h"

#define TILE 16

kernel void matmul(global const float* a, global const float* b, global float* c, uint n) {
    local float tile_a[TILE][TILE];
    local float tile_b[TILE][TILE];
    const uint x = local_x();
    const uint y = local_y();
    const uint column = group_x() * TILE + x;
    const uint row = group_y() * TILE + y;
    float sum = 0.0f;
    for (uint first = 0; first < n; first += TILE) {
        tile_a[y][x] = a[row * n + first + x];
        tile_b[y][x] = b[(first + y) * n + column];
        group_barrier();
        for (uint k = 0; k < TILE; ++k) sum = fused(tile_a[y][k], tile_b[k][x], sum);
        group_barrier();
    }
    c[row * n + column] = sum;
}
