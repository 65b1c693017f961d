// SPDX-License-Identifier: MIT
// Four double rounds of ChaCha.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint s[16];
    for (uint k = 0; k < 16; ++k) s[k] = in[id + k];
    for (uint round = 0; round < 8; ++round)
        for (uint k = 0; k < 4; ++k) {
            const uint shift = round % 2;
            const uint a = k, b = 4 + (k + shift) % 4, c = 8 + (k + 2 * shift) % 4,
                       d = 12 + (k + 3 * shift) % 4;
            s[a] += s[b];
            s[d] = rotated(s[d] ^ s[a], 16);
            s[c] += s[d];
            s[b] = rotated(s[b] ^ s[c], 12);
            s[a] += s[b];
            s[d] = rotated(s[d] ^ s[a], 8);
            s[c] += s[d];
            s[b] = rotated(s[b] ^ s[c], 7);
        }
    for (uint k = 0; k < 4; ++k) out[k] = s[4 * k];
}
