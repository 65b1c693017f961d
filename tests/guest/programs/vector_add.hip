// SPDX-License-Identifier: MIT
// Sum of two vectors whose length is no multiple of the work-group size.
#include "check.h"

__global__ void add(const float* a, const float* b, float* sum, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}

int main() {
    const int n = 100003;
    Random random(1);
    std::vector<float> a(n), b(n), want(n);
    for (int i = 0; i < n; ++i) {
        a[i] = random.unit();
        b[i] = random.unit();
        want[i] = a[i] + b[i];
    }
    DeviceArray<float> da(a), db(b), dsum(n);
    add<<<(n + 255) / 256, 256>>>(da.data(), db.data(), dsum.data(), n);
    HIP_OK(hipGetLastError());
    expect_same("sum", dsum.read(), want);
    return passed("vector_add");
}
