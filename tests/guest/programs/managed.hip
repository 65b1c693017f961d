// SPDX-License-Identifier: MIT
// Memory that CPU and GPU share: managed, registered, coherent with a kernel that runs, and
// system-scope atomics.
#include "check.h"

#include <atomic>

__global__ void square(std::uint32_t* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= x[i];
}

__global__ void answer(std::uint32_t* mail, int rounds) {
    for (int r = 1; r <= rounds; ++r) {
        while (__hip_atomic_load(&mail[0], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != r) {
        }
        __hip_atomic_store(&mail[16], mail[32] * 3 + r, __ATOMIC_RELAXED,
                           __HIP_MEMORY_SCOPE_SYSTEM);
        __hip_atomic_store(&mail[48], r, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    }
}

__global__ void count(std::uint32_t* counter, unsigned long long* wide, int rounds) {
    for (int r = 0; r < rounds; ++r) atomicAdd_system(counter, 1u);
    atomicMax_system(wide, 7ull * (blockIdx.x * blockDim.x + threadIdx.x));
}

int main() {
    const int n = 5000;
    std::uint32_t* shared = nullptr;
    HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&shared), n * 4));
    for (int i = 0; i < n; ++i) shared[i] = i;
    square<<<1, 256>>>(shared, n);
    HIP_OK(hipDeviceSynchronize());
    for (int i = 0; i < n; ++i) expect("managed memory", shared[i] == std::uint32_t(i) * i);
    HIP_OK(hipFree(shared));

    std::vector<std::uint32_t> own(n);
    for (int i = 0; i < n; ++i) own[i] = i + 5;
    void* mapped = nullptr;
    HIP_OK(hipHostRegister(own.data(), n * 4, hipHostRegisterMapped));
    HIP_OK(hipHostGetDevicePointer(&mapped, own.data(), 0));
    square<<<1, 256>>>(static_cast<std::uint32_t*>(mapped), n);
    HIP_OK(hipDeviceSynchronize());
    HIP_OK(hipHostUnregister(own.data()));
    for (int i = 0; i < n; ++i)
        expect("registered memory", own[i] == std::uint32_t(i + 5) * (i + 5));

    std::uint32_t* mail = nullptr;
    HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&mail), 256, hipHostMallocCoherent));
    std::memset(mail, 0, 256);
    const int rounds = 50;
    answer<<<1, 1>>>(mail, rounds);
    for (int r = 1; r <= rounds; ++r) {
        mail[32] = r * 11;
        reinterpret_cast<std::atomic<std::uint32_t>*>(mail)->store(r, std::memory_order_release);
        while (reinterpret_cast<std::atomic<std::uint32_t>*>(mail + 48)->load() !=
               std::uint32_t(r)) {
        }
        expect("the kernel's answer", mail[16] == std::uint32_t(r * 33 + r));
    }
    HIP_OK(hipDeviceSynchronize());

    std::memset(mail, 0, 256);
    const std::uint32_t groups = 64, repeats = 16;
    count<<<groups, 256>>>(mail, reinterpret_cast<unsigned long long*>(mail + 2), repeats);
    std::uint32_t adds = 0;  // of the CPU, while the kernel runs
    do {
        for (int i = 0; i < 1000; ++i, ++adds)
            reinterpret_cast<std::atomic<std::uint32_t>*>(mail)->fetch_add(1);
    } while (hipStreamQuery(nullptr) == hipErrorNotReady);
    HIP_OK(hipDeviceSynchronize());
    std::printf("%u by the CPU, %u in sum\n", adds, mail[0]);
    expect("atomics of both sides", mail[0] == groups * 256 * repeats + adds);
    expect("a wide atomic maximum", mail[2] == 7 * (groups * 256 - 1) && mail[3] == 0);
    HIP_OK(hipHostFree(mail));
    std::puts("ok managed");
}
