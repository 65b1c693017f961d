// SPDX-License-Identifier: MIT
// Never ends: each wave's first lane counts up one cell of progress for ever.
#include "kernel.h"

kernel void endless(global volatile uint* progress) {
    const uint wave = global_x() / 64;
    const bool counts = global_x() % 64 == 0;
    for (uint i = 1;; ++i)
        if (counts) progress[wave] = i;
}
