// SPDX-License-Identifier: MIT
// Floor, ceiling, truncation and nearest.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float x = small_float(in[id]) * 100.0f;
    out[0] = AS_UINT(__builtin_floorf(x) + __builtin_ceilf(x * 0.5f));
    out[1] = AS_UINT(__builtin_truncf(x)) ^ AS_UINT(__builtin_rintf(x));
    out[2] = (uint)(int)x;
    out[3] = x > 0.0f ? (uint)(x * 1000.0f) : 0;
}
