// SPDX-License-Identifier: MIT
// Atomics on global memory and LDS, 32 and 64 bit, integer and float, and a spin lock between
// groups.
#include "check.h"

struct Cells {
    unsigned int add, sub, min, max, bits_and, bits_or, bits_xor, inc, exchanged, locked;
    unsigned long long add64, max64;
    float sum;
    double sum64;
    int lock;
};

__global__ void update(Cells* c) {
    __shared__ unsigned int local;
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) local = 0;
    __syncthreads();
    atomicAdd(&local, 1u);
    atomicAdd(&c->add, i);
    atomicSub(&c->sub, 1u);
    atomicMin(&c->min, 1000 + i);
    atomicMax(&c->max, i);
    atomicAnd(&c->bits_and, ~(1u << (i % 16)));
    atomicOr(&c->bits_or, 1u << (i % 20));
    atomicXor(&c->bits_xor, i);
    atomicInc(&c->inc, 99u);
    atomicAdd(&c->add64, 0x100000000ull + i);
    atomicMax(&c->max64, 0x500000000ull + i);
    atomicAdd(&c->sum, 0.5f);
    atomicAdd(&c->sum64, 0.25);
    __syncthreads();
    if (threadIdx.x == 0) {
        // one lane of each group: a lock that waves of other CUs hold must be given back
        while (atomicCAS(&c->lock, 0, 1) != 0) {
        }
        __threadfence();
        const unsigned int seen = *static_cast<volatile unsigned int*>(&c->locked);
        *static_cast<volatile unsigned int*>(&c->locked) = seen + local;
        __threadfence();
        atomicExch(&c->lock, 0);
        atomicExch(&c->exchanged, 7u);
    }
}

int main() {
    const unsigned int groups = 24, size = 128, n = groups * size;
    Cells start{}, got{};
    start.sub = n;
    start.min = 0xffffffff;
    start.bits_and = 0xffffffff;
    Cells* device = nullptr;
    HIP_OK(hipMalloc(&device, sizeof start));
    HIP_OK(hipMemcpy(device, &start, sizeof start, hipMemcpyHostToDevice));
    update<<<groups, size>>>(device);
    HIP_OK(hipMemcpy(&got, device, sizeof got, hipMemcpyDeviceToHost));
    HIP_OK(hipFree(device));

    unsigned int bits = 0;
    for (unsigned int i = 0; i < n; ++i) bits ^= i;
    expect("add", got.add == n * (n - 1) / 2);
    expect("sub", got.sub == 0);
    expect("min", got.min == 1000);
    expect("max", got.max == n - 1);
    expect("and", got.bits_and == 0xffff0000);
    expect("or", got.bits_or == 0xfffff);
    expect("xor", got.bits_xor == bits);
    expect("inc wraps", got.inc == n % 100);
    expect("add64",
           got.add64 == 0x100000000ull * n + static_cast<unsigned long long>(n) * (n - 1) / 2);
    expect("max64", got.max64 == 0x500000000ull + n - 1);
    expect("float sum", got.sum == 0.5f * n);
    expect("double sum", got.sum64 == 0.25 * n);
    expect("exchange", got.exchanged == 7);
    expect("the lock excludes", got.locked == n);
    return passed("atomics");
}
