// SPDX-License-Identifier: MIT
// Tiled matrix product through LDS with barriers, in float and double.
#include "check.h"

constexpr int kTile = 16;

template <typename T> __global__ void product(const T* a, const T* b, T* c, int n) {
    __shared__ T left[kTile][kTile];
    __shared__ T right[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    T sum = 0;
    for (int step = 0; step < n / kTile; ++step) {
        left[threadIdx.y][threadIdx.x] = a[row * n + step * kTile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(step * kTile + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < kTile; ++k) sum = fma(left[threadIdx.y][k], right[k][threadIdx.x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}

template <typename T> void check(const char* name, int n) {
    Random random(2);
    std::vector<T> a(n * n), b(n * n), want(n * n);
    for (auto& value : a) value = random.unit() - 0.5f;
    for (auto& value : b) value = random.unit() - 0.5f;
    for (int row = 0; row < n; ++row) {
        for (int column = 0; column < n; ++column) {
            T sum = 0;
            for (int k = 0; k < n; ++k) sum = std::fma(a[row * n + k], b[k * n + column], sum);
            want[row * n + column] = sum;
        }
    }
    DeviceArray<T> da(a), db(b), dc(n * n);
    product<T>
        <<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(da.data(), db.data(), dc.data(), n);
    HIP_OK(hipGetLastError());
    expect_same(name, dc.read(), want);
}

int main() {
    check<float>("float product", 96);
    check<double>("double product", 64);
    return passed("matmul");
}
