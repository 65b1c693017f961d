// SPDX-License-Identifier: MIT
// A private array with an index that only the data knows lives in scratch memory.
#include "kernel.h"

#define CELLS 64

kernel void scratch(global const uint* in, global uint* out) {
    uint cell[CELLS];
    const uint t = global_x();
    for (uint i = 0; i < CELLS; ++i) cell[i] = i * t;
    uint place = in[t] % CELLS;
    for (uint i = 0; i < CELLS; ++i) {
        cell[place] += i;
        place = (place * 5 + cell[(place + 1) % CELLS]) % CELLS;
    }
    uint sum = 0;
    for (uint i = 0; i < CELLS; ++i) sum = sum * 31 + cell[i];
    out[t] = sum;
}
