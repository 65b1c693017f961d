// SPDX-License-Identifier: MIT
// Each work-group stores the HW_ID of its first wave: where it runs.
#include "kernel.h"

enum { kHwIdAllBits = (31 << 11) | 4 };

kernel void where(global uint* out) {
    if (local_x() == 0) out[group_x()] = (uint)__builtin_amdgcn_s_getreg(kHwIdAllBits);
}
