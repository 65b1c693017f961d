// SPDX-License-Identifier: MIT
// Walsh-Hadamard transform of a group in LDS, two buffers.
#define PHASES 7
#define LOCAL_WORDS 128
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    local uint* from = shared + (phase % 2 == 0 ? 64 : 0);
    local uint* to = shared + (phase % 2 == 0 ? 0 : 64);
    if (phase == 0) {
        to[in_group] = in[id];
        return;
    }
    const uint bit = 1u << (phase - 1);
    const uint mine = from[in_group], other = from[in_group ^ bit];
    to[in_group] = (in_group & bit) != 0 ? other - mine : mine + other;
    if (phase == 6) out[0] = to[in_group];
}
