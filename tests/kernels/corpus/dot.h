// SPDX-License-Identifier: MIT
// Dot product of rows of 16.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    float sum = 0.0f;
    for (uint k = 0; k < 16; ++k)
        sum = __builtin_fmaf(small_float(in[id * 16 + k]), small_float(in[k]), sum);
    out[0] = AS_UINT(sum);
}
