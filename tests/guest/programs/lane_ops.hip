// SPDX-License-Identifier: MIT
// Exchange between lanes of a wave, half and packed arithmetic, clocks, and a launch with all of
// the LDS.
#include "check.h"

#include <hip/hip_fp16.h>

#include <algorithm>

__global__ void lanes(std::uint32_t* out) {
    const int lane = threadIdx.x;
    const std::uint32_t x = lane * lane + 3;
    std::uint32_t* mine = out + lane * 12;
    mine[0] = __shfl(x, (lane * 7 + 1) % 64);
    mine[1] = __shfl_up(x, 5);
    mine[2] = __shfl_down(x, 9);
    mine[3] = __shfl_xor(x, 0x2a);
    mine[4] = __shfl_xor(x, 3, 8);
    mine[5] = __popcll(__ballot(x % 3 == 0));
    mine[6] = __any(lane == 63) * 2 + __all(lane < 64);
    mine[7] = __builtin_amdgcn_ds_bpermute(((lane + 11) % 64) * 4, x);
    mine[8] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    mine[9] = __brev(x) ^ __clz(x) ^ __ffs(x);
    mine[10] = __umulhi(x * 77777, x * 55555);
    mine[11] = __byte_perm(x, ~x, 0x5140);
}

__global__ void halves(const __half2* a, const __half2* b, __half2* out) {
    const int i = threadIdx.x;
    out[i] = __hfma2(a[i], b[i], __hadd2(a[i], b[i]));
}

__global__ void clocks(unsigned long long* out) {
    const auto wall = wall_clock64();
    const auto core = clock64();
    for (int i = 0; i < 100; ++i) __builtin_amdgcn_s_sleep(1);
    out[0] = wall_clock64() - wall;
    out[1] = clock64() - core;
}

extern __shared__ std::uint32_t pool[];
__global__ void reverse(std::uint32_t* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) pool[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = pool[n - 1 - i];
}

int main() {
    DeviceArray<std::uint32_t> told(64 * 12);
    lanes<<<1, 64>>>(told.data());
    const auto value = [](int lane) { return std::uint32_t(lane * lane + 3); };
    std::vector<std::uint32_t> want;
    std::uint32_t thirds = 0;
    for (int lane = 0; lane < 64; ++lane) thirds += value(lane) % 3 == 0;
    for (int lane = 0; lane < 64; ++lane) {
        const std::uint32_t x = value(lane);
        std::uint32_t reversed = 0;
        for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
        const std::uint32_t bytes =
            (x & 0xff) | (~x & 0xff) << 8 | (x >> 8 & 0xff) << 16 | (~x >> 8 & 0xff) << 24;
        want.insert(
            want.end(),
            {value((lane * 7 + 1) % 64), value(lane < 5 ? lane : lane - 5),
             value(lane + 9 > 63 ? lane : lane + 9), value(lane ^ 0x2a), value(lane ^ 3), thirds,
             3u, value((lane + 11) % 64), std::uint32_t(lane),
             reversed ^ std::uint32_t(__builtin_clz(x)) ^ std::uint32_t(__builtin_ffs(x)),
             std::uint32_t((std::uint64_t(x * 77777) * std::uint64_t(x * 55555)) >> 32), bytes});
    }
    expect_same("told", told.read(), want);

    std::vector<__half2> a(64), b(64), sums(64);
    for (int i = 0; i < 64; ++i) {
        a[i] = __half2(__float2half(i * 0.25f), __float2half(-i * 0.5f));
        b[i] = __half2(__float2half(3 - i * 0.125f), __float2half(i * 1.0f));
    }
    DeviceArray<__half2> a_there(a), b_there(b), out(64);
    halves<<<1, 64>>>(a_there.data(), b_there.data(), out.data());
    HIP_OK(hipMemcpy(sums.data(), out.data(), 64 * 4, hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) {
        const float p = i * 0.25f, q = 3 - i * 0.125f;
        expect("a half",
               __half2float(__low2half(sums[i])) == __half2float(__float2half(p * q + (p + q))));
        const float u = -i * 0.5f, v = i;
        expect("the other half",
               __half2float(__high2half(sums[i])) == __half2float(__float2half(u * v + (u + v))));
    }

    DeviceArray<unsigned long long> times(2);
    clocks<<<1, 1>>>(times.data());
    expect("clocks advance", times.read()[0] > 0 && times.read()[1] > 0);

    const int n = 64 * 1024 / 4;
    std::vector<std::uint32_t> forth(n);
    for (int i = 0; i < n; ++i) forth[i] = i * 5;
    DeviceArray<std::uint32_t> x(forth);
    reverse<<<1, 1024, n * 4>>>(x.data(), n);
    HIP_OK(hipGetLastError());
    std::reverse(forth.begin(), forth.end());
    expect_same("reversed", x.read(), forth);
    std::puts("ok lane_ops");
}
