// SPDX-License-Identifier: MIT
// A row of a matrix times a vector, in doubles.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    double sum = 0.0;
    for (uint k = 0; k < 16; ++k)
        sum += small_double(in[id * 16 + k], in[k]) * small_double(in[k + 7], in[id]);
    const ulong bits = AS_ULONG(sum);
    out[0] = (uint)bits;
    out[1] = (uint)(bits >> 32);
}
