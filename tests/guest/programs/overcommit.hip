// SPDX-License-Identifier: MIT
// More memory than the VF has: a clean out-of-memory, all that was granted usable, and memory again
// after freeing.
#include "check.h"

__global__ void stamp(std::uint32_t* x, std::uint32_t value) {
    x[threadIdx.x] = value + threadIdx.x;
}

int main() {
    const std::size_t piece = 32 << 20;
    std::vector<std::uint32_t*> pieces;
    hipError_t error = hipSuccess;
    while (pieces.size() < 1024) {
        std::uint32_t* memory = nullptr;
        error = hipMalloc(&memory, piece);
        if (error != hipSuccess) break;
        pieces.push_back(memory);
    }
    expect("the error is hipErrorOutOfMemory", error == hipErrorOutOfMemory);
    expect("several pieces fit", pieces.size() > 2);
    for (std::size_t i = 0; i < pieces.size(); ++i) stamp<<<1, 64>>>(pieces[i], i * 1000);
    HIP_OK(hipDeviceSynchronize());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        std::uint32_t got[64];
        HIP_OK(hipMemcpy(got, pieces[i], sizeof got, hipMemcpyDeviceToHost));
        for (std::uint32_t k = 0; k < 64; ++k) expect("a piece's content", got[k] == i * 1000 + k);
    }
    const std::size_t count = pieces.size();
    for (auto* memory : pieces) HIP_OK(hipFree(memory));
    std::uint32_t* again = nullptr;
    HIP_OK(hipMalloc(&again, piece));
    HIP_OK(hipFree(again));
    std::printf("%zu pieces of 32 MiB\n", count);
    return passed("overcommit");
}
