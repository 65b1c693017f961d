// SPDX-License-Identifier: MIT
//
// What the test kernels use instead of a device library. For the GPU: work-item numbers from the
// builtins and the dispatch packet, barriers, and the types of memory. Any other OpenCL (the peers
// of tests/bench/peers) gets the same names from its own library.
#pragma once

#ifdef __AMDGCN__
typedef __constant const char* dispatch_packet_t;

/// Offsets in the kernel dispatch packet.
enum { kPacketGroupSizeX = 4, kPacketGroupSizeY = 6, kPacketGridSizeX = 12, kPacketGridSizeY = 16 };

static inline uint group_size_x(void) {
    dispatch_packet_t packet = (dispatch_packet_t)__builtin_amdgcn_dispatch_ptr();
    return *(__constant const ushort*)(packet + kPacketGroupSizeX);
}
static inline uint group_size_y(void) {
    dispatch_packet_t packet = (dispatch_packet_t)__builtin_amdgcn_dispatch_ptr();
    return *(__constant const ushort*)(packet + kPacketGroupSizeY);
}
static inline uint grid_size_x(void) {
    dispatch_packet_t packet = (dispatch_packet_t)__builtin_amdgcn_dispatch_ptr();
    return *(__constant const uint*)(packet + kPacketGridSizeX);
}
static inline uint local_x(void) {
    return __builtin_amdgcn_workitem_id_x();
}
static inline uint local_y(void) {
    return __builtin_amdgcn_workitem_id_y();
}
static inline uint group_x(void) {
    return __builtin_amdgcn_workgroup_id_x();
}
static inline uint group_y(void) {
    return __builtin_amdgcn_workgroup_id_y();
}

static inline void group_barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/// a * b + c, rounded once.
static inline float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
static inline float square_root(float x) {
    return __builtin_sqrtf(x);
}
static inline uint rotate_right(uint x, uint n) {
    return (x >> n) | (x << (32 - n));
}
#else
static inline uint group_size_x(void) {
    return (uint)get_local_size(0);
}
static inline uint group_size_y(void) {
    return (uint)get_local_size(1);
}
static inline uint grid_size_x(void) {
    return (uint)get_global_size(0);
}
static inline uint local_x(void) {
    return (uint)get_local_id(0);
}
static inline uint local_y(void) {
    return (uint)get_local_id(1);
}
static inline uint group_x(void) {
    return (uint)get_group_id(0);
}
static inline uint group_y(void) {
    return (uint)get_group_id(1);
}

static inline void group_barrier(void) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

static inline float fused(float a, float b, float c) {
    return fma(a, b, c);
}
static inline float square_root(float x) {
    return sqrt(x);
}
static inline uint rotate_right(uint x, uint n) {
    return rotate(x, 32 - n);
}
#endif

static inline uint global_x(void) {
    return group_x() * group_size_x() + local_x();
}
static inline uint global_y(void) {
    return group_y() * group_size_y() + local_y();
}
