// SPDX-License-Identifier: MIT
// Sums and products of half precision, each rounded.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    half x = AS_HALF(small_half_bits(in[id])), y = AS_HALF(small_half_bits(in[id] >> 16));
    half sum = x;
    for (uint k = 0; k < 8; ++k) {
        const half product = x * y;
        sum = sum + product;
        y = y - x;
        x = product;
    }
    out[0] = HALF_BITS(sum);
    out[1] = HALF_BITS(x) | (HALF_BITS(y) << 16);
    out[2] = sum < x ? 1 : 0;
}
