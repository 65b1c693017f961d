// SPDX-License-Identifier: MIT
// a * x + b * y, each product rounded.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float x = small_float(in[id]), y = small_float(in[WORDS - 1 - id]);
    const float ax = 2.5f * x, by = -0.75f * y;
    out[0] = AS_UINT(ax + by);
    out[1] = AS_UINT(__builtin_fmaf(2.5f, x, by));
}
