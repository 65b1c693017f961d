// SPDX-License-Identifier: MIT
//
// The table of who received what, as both demos print it.
#pragma once

#include "tests/scenario/demo/measurement.h"

namespace vgpu::demo {

void print_table(const Figures& figures);

}  // namespace vgpu::demo
