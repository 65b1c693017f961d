// SPDX-License-Identifier: MIT
// FNV-1a over bytes, in 64 bits.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    ulong h = 0xcbf29ce484222325ul;
    for (uint k = 0; k < 16; ++k)
        h = (h ^ ((in[id + k / 4] >> (8 * (k % 4))) & 0xff)) * 0x100000001b3ul;
    out[0] = (uint)h;
    out[1] = (uint)(h >> 32);
}
