// SPDX-License-Identifier: MIT
// Finds a byte pattern in the bytes of a row.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    global const uint* row = in + id % 64;
    uint found = 0;
    for (uint at = 0; at + 2 < 64; ++at) {
        const uint a = (row[at / 4] >> (8 * (at % 4))) & 15;
        const uint b = (row[(at + 1) / 4] >> (8 * ((at + 1) % 4))) & 15;
        if (a == b) found = found * 3 + at;
    }
    out[0] = found;
}
