// SPDX-License-Identifier: MIT
// Five points of a plane: half of the cell, an eighth of each neighbour. `in` has a border of one.
#include "kernel.h"

#pragma OPENCL FP_CONTRACT OFF

kernel void stencil(global const float* in, global float* out, uint width) {
    const uint x = global_x();
    const uint y = global_y();
    const uint stride = width + 2;
    const uint at = (y + 1) * stride + x + 1;
    const float around = in[at - 1] + in[at + 1] + in[at - stride] + in[at + stride];
    out[y * width + x] = 0.5f * in[at] + 0.125f * around;
}
