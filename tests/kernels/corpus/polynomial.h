// SPDX-License-Identifier: MIT
// Horner schemes of single and double precision side by side.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float x = small_float(in[id]);
    const double y = (double)x;
    float f = 0.0f;
    double d = 0.0;
    for (uint k = 0; k < 12; ++k) {
        const float c = small_float(in[k]);
        f = __builtin_fmaf(f, x, c);
        d = d * y + (double)c;
    }
    out[0] = AS_UINT(f);
    out[1] = AS_UINT((float)d);
    out[2] = (uint)(AS_ULONG(d) >> 20);
}
