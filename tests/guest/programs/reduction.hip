// SPDX-License-Identifier: MIT
// Sum, scan and vote over lanes and LDS.
#include "check.h"

__global__ void sum_lds(const std::uint32_t* x, std::uint64_t* total, int n) {
    __shared__ std::uint64_t partial[256];
    std::uint64_t sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    partial[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(total), partial[0]);
}

__global__ void scan_wave(const std::uint32_t* x, std::uint32_t* inclusive, std::uint64_t* odd) {
    std::uint32_t value = x[threadIdx.x];
    const std::uint64_t votes = __ballot(value & 1);
    for (int step = 1; step < 64; step *= 2) {
        const std::uint32_t other = __shfl_up(value, step);
        if (threadIdx.x >= step) value += other;
    }
    inclusive[threadIdx.x] = value;
    if (threadIdx.x == 0) *odd = votes;
}

int main() {
    const int n = 50000;
    Random random(3);
    std::vector<std::uint32_t> x(n), want(64);
    std::uint64_t total = 0, votes = 0;
    for (int i = 0; i < n; ++i) {
        x[i] = random.next();
        total += x[i];
        if (i < 64) {
            want[i] = x[i] + (i > 0 ? want[i - 1] : 0);
            votes |= static_cast<std::uint64_t>(x[i] & 1) << i;
        }
    }
    DeviceArray<std::uint32_t> dx(x), dscan(64);
    DeviceArray<std::uint64_t> dtotal(std::vector<std::uint64_t>{0}), dodd(1);
    sum_lds<<<12, 256>>>(dx.data(), dtotal.data(), n);
    scan_wave<<<1, 64>>>(dx.data(), dscan.data(), dodd.data());
    HIP_OK(hipGetLastError());
    expect("the sum", dtotal.read()[0] == total);
    expect_same("scan", dscan.read(), want);
    expect("the ballot", dodd.read()[0] == votes);
    return passed("reduction");
}
