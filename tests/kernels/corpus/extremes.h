// SPDX-License-Identifier: MIT
// The largest word of a group and the xor of all, by atomics.
#define PHASES 3
#define LOCAL_WORDS 2
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0) {
        if (in_group < 2) shared[in_group] = 0;
    } else if (phase == 1) {
        local_atomic_max(&shared[0], in[id]);
        local_atomic_xor(&shared[1], in[id]);
    } else {
        out[0] = shared[0];
        out[1] = shared[1];
    }
}
