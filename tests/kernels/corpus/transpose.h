// SPDX-License-Identifier: MIT
// A group exchanges its words as an 8 by 8 matrix through LDS.
#define PHASES 2
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0)
        shared[in_group] = in[id] + in_group;
    else
        out[0] = shared[(in_group % 8) * 8 + in_group / 8];
}
