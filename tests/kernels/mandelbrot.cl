// SPDX-License-Identifier: MIT
// Steps until z = z^2 + c leaves the circle of radius 2, at most `limit`; a picture of 256 columns,
// which repeats every 256 rows. Its blocks of 16 rows come in an order in which few of them already
// have their share of every part.
#include "kernel.h"

#pragma OPENCL FP_CONTRACT OFF

kernel void mandelbrot(global uint* steps, uint limit) {
    const uint column = global_x();
    const uint row = global_y();
    const float cx = (float)column * 0.01171875f - 2.25f;
    const uint line = (row / 16 * 5 + 7) % 16 * 16 + row % 16;
    const float cy = (float)line * 0.009765625f - 1.25f;
    float x = 0.0f, y = 0.0f, xx = 0.0f, yy = 0.0f;
    uint count = 0;
    while (count < limit && xx + yy <= 4.0f) {
        const float xy = x * y;
        y = xy + xy + cy;
        x = xx - yy + cx;
        xx = x * x;
        yy = y * y;
        ++count;
    }
    steps[row * 256 + column] = count;
}
