// SPDX-License-Identifier: MIT
// Powers modulo a prime, by products of 64 bits.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const ulong prime = 4294967291ul;
    ulong base = in[id] % prime, power = 1;
    for (uint left = in [id + 1]; left != 0; left >>= 1) {
        if ((left & 1) != 0) power = power * base % prime;
        base = base * base % prime;
    }
    out[0] = (uint)power;
    out[1] = (uint)base;
}
