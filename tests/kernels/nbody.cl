// SPDX-License-Identifier: MIT
// Acceleration of every work-item's body by `count` bodies: x, y, z, mass.
#include "kernel.h"

#define SOFTENING 0.01f

kernel void nbody(global const float4* bodies, global float4* accelerations, uint count) {
    const uint t = global_x();
    const float4 me = bodies[t];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (uint k = 0; k < count; ++k) {
        const float4 other = bodies[k];
        const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
        const float square = fused(dx, dx, fused(dy, dy, fused(dz, dz, SOFTENING)));
        const float inverse = 1.0f / square_root(square);
        const float pull = other.w * inverse * inverse * inverse;
        x = fused(dx, pull, x);
        y = fused(dy, pull, y);
        z = fused(dz, pull, z);
    }
    accelerations[t] = (float4)(x, y, z, 0.0f);
}
