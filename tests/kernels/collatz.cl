// SPDX-License-Identifier: MIT
// Steps until t + 1 reaches 1: every lane leaves the loop at its own time.
#include "kernel.h"

kernel void collatz(global uint* steps) {
    const uint t = global_x();
    ulong value = t + 1;
    uint count = 0;
    while (value != 1) {
        value = (value & 1) != 0 ? 3 * value + 1 : value / 2;
        ++count;
    }
    steps[t] = count;
}
