// SPDX-License-Identifier: MIT
// Elimination of a matrix of 8 x 8 floats whose diagonal is large, in LDS.
#define PHASES 9
#define LOCAL_WORDS 64
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    const uint row = in_group / 8, column = in_group % 8;
    if (phase == 0) {
        shared[in_group] = AS_UINT(small_float(in[id]) + (row == column ? 40.0f : 0.0f));
        return;
    }
    const uint pivot = phase - 1;
    if (pivot < 7 && row > pivot && column > pivot) {
        const float factor = AS_FLOAT(shared[row * 8 + pivot]) / AS_FLOAT(shared[pivot * 9]);
        const float taken = factor * AS_FLOAT(shared[pivot * 8 + column]);
        shared[in_group] = AS_UINT(AS_FLOAT(shared[in_group]) - taken);
    }
    if (phase == 8) out[0] = shared[in_group];
}
