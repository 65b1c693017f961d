// SPDX-License-Identifier: MIT
// Each item counts what is smaller in its group: a rank sort.
#define PHASES 2
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0) {
        shared[in_group] = in[id] % 100;
        return;
    }
    const uint mine = shared[in_group];
    uint rank = 0;
    for (uint k = 0; k < GROUP; ++k)
        rank += shared[k] < mine || (shared[k] == mine && k < in_group) ? 1 : 0;
    out[0] = rank;
    out[1] = mine;
}
