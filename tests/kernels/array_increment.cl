// SPDX-License-Identifier: MIT
// x[t] += 1 for every work-item: the first program anybody runs.
#include "kernel.h"

kernel void array_increment(global double* x) {
    x[global_x()] += 1.0;
}
