// SPDX-License-Identifier: MIT
// Quotients, roots and fused sums of doubles.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const double x = small_double(in[id], in[id + 1]), y = small_double(in[id + 2], in[id + 3]);
    const double q = x / (y + 5.0);
    const double f = __builtin_fma(x, y, q);
    const ulong bits = AS_ULONG(f) ^ AS_ULONG(q);
    out[0] = (uint)bits;
    out[1] = (uint)(bits >> 32);
    out[2] = (uint)(int)(x * 1000.0);
    out[3] = AS_UINT((float)f);
}
