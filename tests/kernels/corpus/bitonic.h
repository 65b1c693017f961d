// SPDX-License-Identifier: MIT
// Bitonic sort of a group in LDS.
#define PHASES 23
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    if (phase == 0) {
        shared[in_group] = in[id];
        return;
    }
    if (phase == 22) {
        out[0] = shared[in_group];
        return;
    }
    uint size = 2, stride = 1;
    for (uint step = 1; step < phase; ++step) {
        if (stride > 1) {
            stride /= 2;
        } else {
            size *= 2;
            stride = size / 2;
        }
    }
    const uint other = in_group ^ stride;
    if (other > in_group) {
        const uint a = shared[in_group], b = shared[other];
        const bool up = (in_group & size) == 0;
        shared[in_group] = (a < b) == up ? a : b;
        shared[other] = (a < b) == up ? b : a;
    }
}
