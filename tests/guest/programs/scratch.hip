// SPDX-License-Identifier: MIT
// Private memory: an array indexed at run time, recursion, a function pointer; more of it in a
// second kernel, so that the runtime has to enlarge the queue's scratch.
#include "check.h"

__host__ __device__ std::uint32_t mix(std::uint32_t seed, int size, std::uint32_t* work) {
    for (int i = 0; i < size; ++i) work[i] = seed * 2654435761u + i;
    for (int i = 0; i < size; ++i) {
        const int j = work[i] % size;
        const std::uint32_t old = work[j];
        work[j] = work[i] ^ seed;
        work[i] = old;
    }
    std::uint32_t hash = 0;
    for (int i = 0; i < size; ++i) hash = hash * 31 + work[i];
    return hash;
}

__global__ void small(std::uint32_t* out) {
    std::uint32_t work[40];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = mix(i, 40, work);
}

__global__ void large(std::uint32_t* out) {
    std::uint32_t work[700];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = mix(i, 700, work);
}

__host__ __device__ __attribute__((noinline)) std::uint32_t ackermann(std::uint32_t m,
                                                                      std::uint32_t n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__global__ void recursive(std::uint32_t* out) {
    out[threadIdx.x] = ackermann(2, threadIdx.x % 7);
}

int main() {
    const int n = 512;
    DeviceArray<std::uint32_t> out(n);
    std::vector<std::uint32_t> want(n), work(700);
    for (int round = 0; round < 2; ++round) {
        small<<<n / 64, 64>>>(out.data());
        HIP_OK(hipGetLastError());
        for (int i = 0; i < n; ++i) want[i] = mix(i, 40, work.data());
        expect_same("small frame", out.read(), want);
        large<<<n / 64, 64>>>(out.data());
        HIP_OK(hipGetLastError());
        for (int i = 0; i < n; ++i) want[i] = mix(i, 700, work.data());
        expect_same("large frame", out.read(), want);
    }
    HIP_OK(hipDeviceSetLimit(hipLimitStackSize, 16384));
    recursive<<<1, 64>>>(out.data());
    HIP_OK(hipDeviceSynchronize());
    std::vector<std::uint32_t> got = out.read();
    for (int i = 0; i < 64; ++i) expect("the recursion", got[i] == ackermann(2, i % 7));
    return passed("scratch");
}
