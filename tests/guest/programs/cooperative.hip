// SPDX-License-Identifier: MIT
// A grid whose groups wait for each other, again and again (cooperative launch).
#include "check.h"

#include <hip/hip_cooperative_groups.h>

// each round every element becomes the sum of its neighbours' values of the round before
__global__ void relax(std::uint32_t* even, std::uint32_t* odd, int n, int rounds) {
    const auto grid = cooperative_groups::this_grid();
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; ++r) {
        std::uint32_t* from = r % 2 == 0 ? even : odd;
        std::uint32_t* to = r % 2 == 0 ? odd : even;
        for (int i = first; i < n; i += gridDim.x * blockDim.x)
            to[i] = from[(i + n - 1) % n] + from[(i + 1) % n] + r;
        grid.sync();
    }
}

int main() {
    int is_offered = 0;
    HIP_OK(hipDeviceGetAttribute(&is_offered, hipDeviceAttributeCooperativeLaunch, 0));
    int n = 5000, rounds = 20, per_cu = 0;
    HIP_OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_cu, relax, 128, 0));
    expect("a group fits on a CU", per_cu > 0);
    std::vector<std::uint32_t> want(n);
    Random random(7);
    for (auto& value : want) value = random.next();
    DeviceArray<std::uint32_t> even(want), odd(n);
    std::uint32_t *even_data = even.data(), *odd_data = odd.data();
    void* arguments[] = {&even_data, &odd_data, &n, &rounds};
    std::printf("cooperative launches are %soffered\n", is_offered ? "" : "not ");
    HIP_OK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(relax), dim3(8), dim3(128), arguments,
                                      0, nullptr));
    HIP_OK(hipDeviceSynchronize());
    for (int r = 0; r < rounds; ++r) {
        std::vector<std::uint32_t> next(n);
        for (int i = 0; i < n; ++i) next[i] = want[(i + n - 1) % n] + want[(i + 1) % n] + r;
        want = next;
    }
    expect_same("cell", even.read(), want);
    std::puts("ok cooperative");
}
