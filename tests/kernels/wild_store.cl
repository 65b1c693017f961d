// SPDX-License-Identifier: MIT
// Stores through a pointer that the host chose to be nowhere.
#include "kernel.h"

kernel void wild_store(global volatile uint* out, ulong address) {
    out[global_x()] = 1;
    if (global_x() == 5) *(global volatile uint*)address = 0xdeadbeef;
    out[global_x()] = 2;
}
