// SPDX-License-Identifier: MIT
// Stores one number, then runs into a word that is no instruction.
#include "kernel.h"

kernel void illegal(global volatile uint* out) {
    out[global_x()] = 1;
    __asm__ volatile("s_waitcnt vmcnt(0)\n.long 0xbfff0000");
    out[global_x()] = 2;
}
