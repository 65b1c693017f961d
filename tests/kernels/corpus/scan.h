// SPDX-License-Identifier: MIT
// Inclusive prefix sums of a group in LDS (Hillis and Steele, two buffers).
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
    const uint step = 1u << (phase - 1);
    to[in_group] = from[in_group] + (in_group >= step ? from[in_group - step] : 0);
    if (phase == 6) out[0] = to[in_group];
}
