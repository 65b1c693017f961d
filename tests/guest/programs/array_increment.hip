// SPDX-License-Identifier: MIT
// The array-increment program: 32 doubles, 0..31 become 1..32.
#include "check.h"

__global__ void increment(double* x) {
    x[threadIdx.x] += 1;
}

int main() {
    std::vector<double> values(32), want(32);
    for (int i = 0; i < 32; ++i) {
        values[i] = i;
        want[i] = i + 1;
    }
    DeviceArray<double> device(values);
    increment<<<1, 32>>>(device.data());
    HIP_OK(hipDeviceSynchronize());
    expect_same("x", device.read(), want);
    return passed("array_increment");
}
