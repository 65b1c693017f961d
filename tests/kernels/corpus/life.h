// SPDX-License-Identifier: MIT
// The game of life on bits of words.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint rows[8];
    for (uint k = 0; k < 8; ++k) rows[k] = in[id + k];
    for (uint step = 0; step < 4; ++step) {
        uint next[8];
        for (uint r = 0; r < 8; ++r) {
            uint ones = 0, twos = 0, fours = 0;
            for (uint k = 0; k < 9; ++k) {
                if (k == 4) continue;
                const uint row = rows[(r + 7 + k / 3) % 8];
                const uint x = k % 3 == 1 ? row : rotated(row, k % 3 == 0 ? 1 : 31);
                const uint carry = ones & x;
                ones ^= x;
                fours |= twos & carry;
                twos ^= carry;
            }
            next[r] = twos & ~fours & (ones | rows[r]);
        }
        for (uint r = 0; r < 8; ++r) rows[r] = next[r];
    }
    out[0] = rows[0] ^ rows[3];
    out[1] = rows[5] ^ rows[7];
}
