// SPDX-License-Identifier: MIT
// Ways to put six queens beside some that stand already: backtracking on a stack in scratch.
#define PHASES 1
#define LOCAL_WORDS 1
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint columns[8], rising[8], falling[8], free[8];
    uint row = 0, found = 0, tried = 0;
    const uint all = 0x3f;
    columns[0] = rising[0] = falling[0] = 0;
    free[0] = all & in[id];
    for (;;) {
        if (free[row] == 0) {
            if (row == 0) break;
            --row;
            continue;
        }
        const uint queen = free[row] & (0u - free[row]);
        free[row] &= ~queen;
        ++tried;
        if (row == 5) {
            ++found;
            continue;
        }
        columns[row + 1] = columns[row] | queen;
        rising[row + 1] = (rising[row] | queen) << 1;
        falling[row + 1] = (falling[row] | queen) >> 1;
        ++row;
        free[row] = all & ~(columns[row] | rising[row] | falling[row]);
    }
    out[0] = found;
    out[1] = tried;
}
