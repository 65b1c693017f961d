// SPDX-License-Identifier: MIT
// Three bytes as four letters.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint letters = 0;
    for (uint k = 0; k < 4; ++k) {
        const uint code = (in[id] >> (18 - 6 * k)) & 63;
        uint letter = code == 62 ? 43 : 47;
        if (code < 26)
            letter = 65 + code;
        else if (code < 52)
            letter = 97 + code - 26;
        else if (code < 62)
            letter = 48 + code - 52;
        letters = (letters << 8) | letter;
    }
    out[0] = letters;
}
