// SPDX-License-Identifier: MIT
// Stores a number, runs into one of several events, and stores another behind it.
#include "kernel.h"

enum { kTrap7 = 0, kAbort = 1, kIllegal = 2, kWildStore = 3 };

kernel void trap(global volatile uint* out, uint kind) {
    out[local_x()] = 1;
    switch (kind) {
        case kTrap7:
            // SCC and registers are the program's: the handler gives them back
            __asm__ volatile("s_cmp_eq_u32 0, 0\n"
                             "s_trap 7\n"
                             "s_cbranch_scc1 1f\n"
                             "s_endpgm\n"
                             "1:" ::: "scc");
            break;
        case kAbort:
            __asm__ volatile("s_trap 2");
            break;
        case kIllegal:
            __asm__ volatile("s_waitcnt vmcnt(0)\n.long 0xbfff0000");
            break;
        default:
            *(global volatile uint*)0x10 = 3;
            break;
    }
    out[local_x()] = 2;
}
