// SPDX-License-Identifier: MIT
// y = a * x + y, with a fused multiply-add, over a grid-stride loop.
#include "kernel.h"

kernel void saxpy(global const float* x, global float* y, float a, uint n) {
    for (uint t = global_x(); t < n; t += grid_size_x()) y[t] = fused(a, x[t], y[t]);
}
