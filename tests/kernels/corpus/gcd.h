// SPDX-License-Identifier: MIT
// Greatest common divisors by Euclid and by halving: loops that end at another time in every lane.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint a = in[id], b = in[id + 1] | 1;
    while (b != 0) {
        const uint rest = a % b;
        a = b;
        b = rest;
    }
    out[0] = a;
    uint x = in[id + 2] | 1, y = in[id + 3] | 1, steps = 0;
    while (x != y) {
        if (x < y) {
            const uint other = x;
            x = y;
            y = other;
        }
        x -= y;
        while ((x & 1) == 0) x >>= 1;
        ++steps;
    }
    out[1] = x;
    out[2] = steps;
}
