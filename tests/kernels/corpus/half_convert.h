// SPDX-License-Identifier: MIT
// Between half and single precision, denormals included.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    const half h = AS_HALF((in[id] & 0x7c00) == 0x7c00 ? in[id] & 0x83ff : in[id] & 0xffff);
    const float wide = (float)h;
    out[0] = AS_UINT(wide);
    out[1] = HALF_BITS((half)(wide * 1.25f));
    out[2] = HALF_BITS((half)(small_float(in[id + 1]) * 6.0e-5f));
}
