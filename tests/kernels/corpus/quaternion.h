// SPDX-License-Identifier: MIT
// Products of quaternions of floats.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    float q[4], p[4];
    for (uint k = 0; k < 4; ++k) {
        q[k] = small_float(in[id * 8 + k]);
        p[k] = small_float(in[id * 8 + 4 + k]) * 0.25f;
    }
    for (uint k = 0; k < 5; ++k) {
        const float w = q[0] * p[0] - q[1] * p[1] - q[2] * p[2] - q[3] * p[3];
        const float x = q[0] * p[1] + q[1] * p[0] + q[2] * p[3] - q[3] * p[2];
        const float y = q[0] * p[2] - q[1] * p[3] + q[2] * p[0] + q[3] * p[1];
        const float z = q[0] * p[3] + q[1] * p[2] - q[2] * p[1] + q[3] * p[0];
        q[0] = w;
        q[1] = x;
        q[2] = y;
        q[3] = z;
    }
    for (uint k = 0; k < 4; ++k) out[k] = AS_UINT(q[k]);
}
