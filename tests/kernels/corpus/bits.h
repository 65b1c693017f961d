// SPDX-License-Identifier: MIT
// Counting, reversing and finding bits.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const uint x = in[id] | 1;
    uint reversed = 0;
    for (uint k = 0; k < 32; ++k) reversed |= ((x >> k) & 1) << (31 - k);
    out[0] = reversed;
    out[1] = (uint)__builtin_popcount(x);
    out[2] = (uint)__builtin_clz(x) | ((uint)__builtin_ctz(in[id] | 0x80000000u) << 8);
    out[3] = rotated(x, (x & 15) + 1) ^ ((x >> (x & 15)) & ((1u << (x >> 27)) - 1));
}
