// SPDX-License-Identifier: MIT
// A kernel that writes where nothing is mapped. The driver reports a memory fault and the runtime
// aborts the process; reaching the end is the failure.
#include "check.h"

__global__ void wild(int* x) {
    x[threadIdx.x] = 1;
}

int main() {
    wild<<<1, 64>>>(reinterpret_cast<int*>(0x7f1234560000));
    std::printf("synchronize: %s\n", hipGetErrorString(hipDeviceSynchronize()));
    return 0;
}
