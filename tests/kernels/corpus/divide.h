// SPDX-License-Identifier: MIT
// Quotients and remainders of integers of 32 and 64 bits.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const uint a = in[id], b = (in[id + 1] >> (in[id] % 31)) | 1;
    const int sa = (int)a, sb = (int)(b >> 1) + 1;
    out[0] = a / b;
    out[1] = (uint)(sa / sb) ^ (uint)(sa % sb);
    out[2] = a % b;
    const ulong wide = ((ulong)a << 32) | in[id + 2];
    out[3] = (uint)(wide / b) ^ (uint)(wide % b);
}
