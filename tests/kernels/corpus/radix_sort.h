// SPDX-License-Identifier: MIT
// A group sorts bytes bit by bit: stable splits between two buffers of LDS.
#define PHASES 10
#define LOCAL_WORDS 128
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    local uint* from = shared + (phase % 2 == 0 ? 64 : 0);
    local uint* to = shared + (phase % 2 == 0 ? 0 : 64);
    if (phase == 0) {
        to[in_group] = (in[id] & 0xff) | (in_group << 8);
        return;
    }
    if (phase == 9) {
        out[0] = from[in_group];
        return;
    }
    const uint bit = 1u << (phase - 1);
    uint zeros = 0, ones_before = 0;
    for (uint k = 0; k < 64; ++k) {
        if ((from[k] & bit) == 0)
            ++zeros;
        else if (k < in_group)
            ++ones_before;
    }
    const uint key = from[in_group];
    to[(key & bit) != 0 ? zeros + ones_before : in_group - ones_before] = key;
}
