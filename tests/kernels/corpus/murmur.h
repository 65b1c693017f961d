// SPDX-License-Identifier: MIT
// MurmurHash3 of eight words.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint h = id;
    for (uint k = 0; k < 8; ++k) {
        h ^= rotated(in[id * 8 + k] * 0xcc9e2d51u, 15) * 0x1b873593u;
        h = rotated(h, 13) * 5 + 0xe6546b64u;
    }
    h ^= 32;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    out[0] = h ^ (h >> 16);
}
