// SPDX-License-Identifier: MIT
// Steps until a point of the plane escapes.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const float cx = small_float(in[id]) * 0.5f, cy = small_float(in[id + 1]) * 0.5f;
    float x = 0.0f, y = 0.0f;
    uint steps = 0;
    while (steps < 200 && x * x + y * y < 4.0f) {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++steps;
    }
    out[0] = steps;
    out[1] = AS_UINT(x);
}
