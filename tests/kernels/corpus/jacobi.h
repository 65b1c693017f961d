// SPDX-License-Identifier: MIT
// Relaxation of a ring of doubles, their halves in LDS, two buffers.
#define PHASES 9
#define LOCAL_WORDS 256
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    local uint* from = shared + (phase % 2 == 0 ? 128 : 0);
    local uint* to = shared + (phase % 2 == 0 ? 0 : 128);
    double value = small_double(in[id], in[id + 1]);
    if (phase > 0) {
        const uint left = (in_group + 63) % 64, right = (in_group + 1) % 64;
        const ulong before = ((ulong)from[left + 64] << 32) | from[left];
        const ulong behind = ((ulong)from[right + 64] << 32) | from[right];
        value = (AS_DOUBLE(before) + AS_DOUBLE(behind)) * 0.5 - value / 3.0;
    }
    const ulong bits = AS_ULONG(value);
    to[in_group] = (uint)bits;
    to[in_group + 64] = (uint)(bits >> 32);
    if (phase == 8) {
        out[0] = (uint)bits;
        out[1] = (uint)(bits >> 32);
    }
}
