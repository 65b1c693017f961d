// SPDX-License-Identifier: MIT
// A tree of sums in LDS.
#define PHASES 7
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0) {
        shared[in_group] = in[id];
        return;
    }
    const uint half_size = 64u >> phase;
    if (in_group < half_size) shared[in_group] += shared[in_group + half_size];
    if (phase == 6) out[0] = in_group == 0 ? shared[0] : in_group;
}
