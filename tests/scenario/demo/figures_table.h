// SPDX-License-Identifier: MIT
//
// Prints the table of weights and received service; both demos use it.
#pragma once

#include "tests/scenario/demo/measurement.h"

namespace vgpu::demo {

void print_table(const Figures& figures);

}  // namespace vgpu::demo
