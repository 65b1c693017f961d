// SPDX-License-Identifier: MIT
// Counts in LDS, each item adds where its words say.
#define PHASES 3
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0) {
        shared[in_group] = 0;
    } else if (phase == 1) {
        for (uint k = 0; k < 4; ++k) local_atomic_add(&shared[in[id * 4 + k] % 64], k + 1);
    } else {
        out[0] = shared[in_group];
    }
}
