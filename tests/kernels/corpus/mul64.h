// SPDX-License-Identifier: MIT
// Products, shifts and high halves of 64-bit integers.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const ulong a = ((ulong)in[id] << 32) | in[id + 1], b = ((ulong)in[id + 2] << 32) | in[id + 3];
    const ulong product = a * b;
    const ulong low = (a & 0xffffffff) * (b >> 32), middle = (a >> 32) * (b & 0xffffffff);
    const ulong high = (a >> 32) * (b >> 32) + (low >> 32) + (middle >> 32);
    const ulong mixed = product ^ (high << (a & 63)) ^ (ulong)((long)b >> (b & 63));
    out[0] = (uint)mixed;
    out[1] = (uint)(mixed >> 32);
    out[2] = a < b ? 1 : 0;
    out[3] = (long)a < (long)b ? 1 : 0;
}
