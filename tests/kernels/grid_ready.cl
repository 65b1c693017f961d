// SPDX-License-Identifier: MIT
// Makes the first resource of global wave sync ready for grid_meet, as a runtime does before a
// cooperative launch.
#include "kernel.h"

kernel void grid_ready(uint groups) {
    __builtin_amdgcn_ds_gws_init(groups - 1, 0);
}
