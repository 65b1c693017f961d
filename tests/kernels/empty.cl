// SPDX-License-Identifier: MIT
// Nothing: what a dispatch costs.
#include "kernel.h"

kernel void empty(void) {}
