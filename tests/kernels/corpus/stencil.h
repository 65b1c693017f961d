// SPDX-License-Identifier: MIT
// Five points of a ring, several steps in LDS.
#define PHASES 5
#define LOCAL_WORDS 128
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    local uint* from = shared + (phase % 2 == 0 ? 64 : 0);
    local uint* to = shared + (phase % 2 == 0 ? 0 : 64);
    if (phase == 0) {
        to[in_group] = AS_UINT(small_float(in[id]));
        return;
    }
    float sum = 0.0f;
    for (uint k = 0; k < 5; ++k)
        sum += AS_FLOAT(from[(in_group + 62 + k) % 64]) * (k == 2 ? 0.5f : 0.125f);
    to[in_group] = AS_UINT(sum);
    if (phase == 4) out[0] = to[in_group];
}
