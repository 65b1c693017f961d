// SPDX-License-Identifier: MIT
// Loads from one place, once or until an address watch is hit, and stores TRAPSTS.
#include "kernel.h"

enum { kAddressWatch = 0x7080 };

kernel void watched(global volatile uint* place, global volatile uint* out, uint until_hit) {
    uint status;
    do {
        (void)*place;
        __asm__ volatile("s_getreg_b32 %0, hwreg(HW_REG_TRAPSTS)" : "=s"(status)::"memory");
    } while (until_hit && !(status & kAddressWatch));
    *out = status;
}
