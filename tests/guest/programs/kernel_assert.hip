// SPDX-License-Identifier: MIT
// An assertion that fails in a kernel ends the program with its text.
#include "check.h"

#include <cassert>

__global__ void check_it(int limit) {
    assert(threadIdx.x < limit && "a lane beyond the limit");
}

int main() {
    check_it<<<1, 64>>>(64);
    HIP_OK(hipDeviceSynchronize());
    std::puts("as far as here");
    std::fflush(stdout);
    check_it<<<1, 64>>>(60);
    std::printf("synchronize: %s\n", hipGetErrorString(hipDeviceSynchronize()));
}
