// SPDX-License-Identifier: MIT
// SipHash-2-4 of two words of 64 bits.
#define PHASES 1
#define LOCAL_WORDS 1
static inline ulong rotated_long(ulong x, uint by) {
    return (x << by) | (x >> (64 - by));
}
static inline void sip_round(ulong* v) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotated_long(v[1], 13) ^ v[0];
    v[3] = rotated_long(v[3], 16) ^ v[2];
    v[0] = rotated_long(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotated_long(v[1], 17) ^ v[2];
    v[3] = rotated_long(v[3], 21) ^ v[0];
    v[2] = rotated_long(v[2], 32);
}
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const ulong key0 = 0x0706050403020100ul, key1 = 0x0f0e0d0c0b0a0908ul;
    ulong v[4] = {key0 ^ 0x736f6d6570736575ul, key1 ^ 0x646f72616e646f6dul,
                  key0 ^ 0x6c7967656e657261ul, key1 ^ 0x7465646279746573ul};
    for (uint k = 0; k < 2; ++k) {
        const ulong word = ((ulong)in[id * 4 + k * 2] << 32) | in[id * 4 + k * 2 + 1];
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (uint k = 0; k < 4; ++k) sip_round(v);
    const ulong hash = v[0] ^ v[1] ^ v[2] ^ v[3];
    out[0] = (uint)hash;
    out[1] = (uint)(hash >> 32);
}
