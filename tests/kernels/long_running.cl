// SPDX-License-Identifier: MIT
// Many rounds of a xorshift generator; every 256 rounds the work-item's progress is stored.
#include "kernel.h"

kernel void long_running(global uint* result, global volatile uint* progress, uint rounds) {
    const uint t = global_x();
    uint x = t * 2654435761u + 1;
    for (uint i = 0; i < rounds; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        if (i % 256 == 0) progress[t] = i;
    }
    result[t] = x;
    progress[t] = rounds;
}
