// SPDX-License-Identifier: MIT
// c[t] = a[t] + b[t] for t < n.
#include "kernel.h"

kernel void vector_add(global const float* a, global const float* b, global float* c, uint n) {
    const uint t = global_x();
    if (t < n) c[t] = a[t] + b[t];
}
