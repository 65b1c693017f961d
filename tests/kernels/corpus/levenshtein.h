// SPDX-License-Identifier: MIT
// Edit distance of two words of eight letters, a row of the table in scratch.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint row[9];
    for (uint k = 0; k <= 8; ++k) row[k] = k;
    for (uint i = 0; i < 8; ++i) {
        const uint letter = (in[id] >> (i * 4)) & 3;
        uint diagonal = row[0];
        row[0] = i + 1;
        for (uint j = 0; j < 8; ++j) {
            const uint replaced = diagonal + (((in[id + 1] >> (j * 4)) & 3) == letter ? 0 : 1);
            const uint left = row[j] + 1, above = row[j + 1] + 1;
            const uint gap = left < above ? left : above;
            diagonal = row[j + 1];
            row[j + 1] = replaced < gap ? replaced : gap;
        }
    }
    out[0] = row[8];
    out[1] = row[4];
}
