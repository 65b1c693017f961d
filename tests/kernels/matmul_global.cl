// SPDX-License-Identifier: MIT
// c = a * b, square f32 matrices, every operand read from global memory.
#include "kernel.h"

kernel void matmul_global(global const float* a, global const float* b, global float* c, uint n) {
    const uint column = global_x();
    const uint row = global_y();
    float sum = 0.0f;
    for (uint k = 0; k < n; ++k) sum = fused(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}
