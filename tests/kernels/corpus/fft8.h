// SPDX-License-Identifier: MIT
// A transform of eight complex numbers.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    float re[8], im[8];
    for (uint k = 0; k < 8; ++k) {
        const uint reversed = ((k & 1) << 2) | (k & 2) | (k >> 2);
        re[reversed] = small_float(in[id * 8 + k]);
        im[reversed] = small_float(in[WORDS - 1 - (id * 8 + k)]);
    }
    for (uint size = 1; size < 8; size *= 2)
        for (uint k = 0; k < 8; ++k) {
            if ((k & size) != 0) continue;
            const uint turn = (k % size) * (4 / size);
            const float c = turn == 0   ? 1.0f
                            : turn == 1 ? 0.70710677f
                            : turn == 2 ? 0.0f
                                        : -0.70710677f;
            const float s = turn == 0 ? 0.0f : turn == 2 ? -1.0f : -0.70710677f;
            const float x = re[k + size] * c - im[k + size] * s;
            const float y = re[k + size] * s + im[k + size] * c;
            re[k + size] = re[k] - x;
            im[k + size] = im[k] - y;
            re[k] += x;
            im[k] += y;
        }
    out[0] = AS_UINT(re[1]);
    out[1] = AS_UINT(im[3]);
    out[2] = AS_UINT(re[6]);
    out[3] = AS_UINT(im[7]);
}
