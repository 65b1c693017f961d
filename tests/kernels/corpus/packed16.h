// SPDX-License-Identifier: MIT
// Pairs of 16-bit integers: sums, products, shifts, extremes.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const uint a = in[id], b = in[id + 1];
    uint out0 = 0, out1 = 0, out2 = 0;
    for (uint k = 0; k < 2; ++k) {
        const ushort x = (ushort)(a >> (16 * k)), y = (ushort)(b >> (16 * k));
        const short sx = (short)x, sy = (short)y;
        out0 |= (uint)(ushort)(x * (uint)y + 3u) << (16 * k);
        out1 |= (uint)(ushort)(sx < sy ? sx : sy) << (16 * k);
        out2 |= (uint)(ushort)((sx >> (y & 15)) ^ (x << (y & 7))) << (16 * k);
    }
    out[0] = out0;
    out[1] = out1;
    out[2] = out2;
}
