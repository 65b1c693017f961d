// SPDX-License-Identifier: MIT
// printf from a kernel (hostcall): every work-item of two groups prints one line; the test counts
// them.
#include "check.h"

__global__ void speak(int base) {
    printf("item %d of group %d says %.3f %s\n", static_cast<int>(threadIdx.x),
           static_cast<int>(blockIdx.x), base + threadIdx.x * 0.125, "hello");
}

int main() {
    speak<<<2, 70>>>(40);
    HIP_OK(hipDeviceSynchronize());
    return passed("printf");
}
