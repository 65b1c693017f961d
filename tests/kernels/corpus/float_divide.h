// SPDX-License-Identifier: MIT
// Quotients and roots of singles, rounded correctly.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float x = small_float(in[id]), y = small_float(in[id + 1]) + 4.5f;
    out[0] = AS_UINT(x / y);
    out[1] = AS_UINT(__builtin_sqrtf(y));
    out[2] =
        AS_UINT(AS_FLOAT(in[id] & 0x7f7fffff) / AS_FLOAT((in[id + 1] & 0x7f7fffff) | 0x00800000));
}
