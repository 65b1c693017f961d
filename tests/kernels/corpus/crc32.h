// SPDX-License-Identifier: MIT
// CRC-32, bit by bit.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint crc = ~in[id];
    for (uint k = 0; k < 32; ++k) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    out[0] = ~crc;
}
