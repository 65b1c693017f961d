// SPDX-License-Identifier: MIT
// `rounds` rounds of a xorshift generator and a linear congruential one, in registers alone.
#include "kernel.h"

kernel void hash(global uint* out, uint rounds) {
    const uint t = global_x();
    uint x = t * 2654435761u + 1;
    for (uint i = 0; i < rounds; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x = x * 1664525u + 1013904223u;
    }
    out[t] = x;
}
