// SPDX-License-Identifier: MIT
// One step of gravity among 16 bodies.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float x = small_float(in[id]), y = small_float(in[id + 1]), z = small_float(in[id + 2]);
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (uint k = 0; k < 16; ++k) {
        const float dx = small_float(in[3 * k]) - x, dy = small_float(in[3 * k + 1]) - y;
        const float dz = small_float(in[3 * k + 2]) - z;
        const float r2 = __builtin_fmaf(dx, dx, __builtin_fmaf(dy, dy, dz * dz + 0.01f));
        const float inverse = 1.0f / __builtin_sqrtf(r2);
        const float f = inverse * inverse * inverse;
        ax = __builtin_fmaf(dx, f, ax);
        ay = __builtin_fmaf(dy, f, ay);
        az = __builtin_fmaf(dz, f, az);
    }
    out[0] = AS_UINT(ax);
    out[1] = AS_UINT(ay);
    out[2] = AS_UINT(az);
}
