// SPDX-License-Identifier: MIT
// One SHA-256 per work-item: of the 4-byte little-endian number of the work-item plus `base`.
#include "kernel.h"

__constant const uint kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint big_endian(uint x) {
    return (x >> 24) | ((x >> 8) & 0xff00) | ((x << 8) & 0xff0000) | (x << 24);
}

kernel void sha256(global uint* digests, uint base) {
    const uint t = global_x();
    uint w[16] = {big_endian(base + t), 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32};
    const uint start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint h[8];
    for (uint i = 0; i < 8; ++i) h[i] = start[i];
#pragma unroll
    for (uint i = 0; i < 64; ++i) {
        if (i >= 16) {
            const uint x = w[(i + 1) & 15];
            const uint y = w[(i + 14) & 15];
            const uint s0 = rotate_right(x, 7) ^ rotate_right(x, 18) ^ (x >> 3);
            const uint s1 = rotate_right(y, 17) ^ rotate_right(y, 19) ^ (y >> 10);
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        const uint e = h[4];
        const uint a = h[0];
        const uint s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        const uint choice = (e & h[5]) ^ (~e & h[6]);
        const uint one = h[7] + s1 + choice + kRounds[i] + w[i & 15];
        const uint s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        const uint majority = (a & h[1]) ^ (a & h[2]) ^ (h[1] & h[2]);
        h[7] = h[6];
        h[6] = h[5];
        h[5] = e;
        h[4] = h[3] + one;
        h[3] = h[2];
        h[2] = h[1];
        h[1] = a;
        h[0] = one + s0 + majority;
    }
    for (uint i = 0; i < 8; ++i) digests[t * 8 + i] = h[i] + start[i];
}
