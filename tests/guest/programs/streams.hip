// SPDX-License-Identifier: MIT
// Streams and events: independent work on four streams, an order across streams, event times.
#include "check.h"

__global__ void multiply_add(std::uint32_t* x, int n, std::uint32_t factor, std::uint32_t addend) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = x[i] * factor + addend;
}

__global__ void spin(std::uint32_t* out, int rounds) {
    std::uint32_t x = threadIdx.x + 1;
    for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
    out[threadIdx.x] = x;
}

int main() {
    const int n = 20000, count = 4, rounds = 6;
    hipStream_t streams[count];
    std::uint32_t* pinned[count];
    std::uint32_t* device[count];
    for (int s = 0; s < count; ++s) {
        HIP_OK(hipStreamCreate(&streams[s]));
        HIP_OK(hipHostMalloc(&pinned[s], n * sizeof(std::uint32_t), 0));
        HIP_OK(hipMalloc(&device[s], n * sizeof(std::uint32_t)));
        for (int i = 0; i < n; ++i) pinned[s][i] = i * 3 + s;
    }
    for (int s = 0; s < count; ++s) {
        HIP_OK(hipMemcpyAsync(device[s], pinned[s], n * 4, hipMemcpyHostToDevice, streams[s]));
        for (int r = 0; r < rounds; ++r)
            multiply_add<<<4, 256, 0, streams[s]>>>(device[s], n, 5 + s, r);
        HIP_OK(hipMemcpyAsync(pinned[s], device[s], n * 4, hipMemcpyDeviceToHost, streams[s]));
    }
    for (int s = 0; s < count; ++s) HIP_OK(hipStreamSynchronize(streams[s]));
    for (int s = 0; s < count; ++s) {
        for (int i = 0; i < n; ++i) {
            std::uint32_t x = i * 3 + s;
            for (int r = 0; r < rounds; ++r) x = x * (5 + s) + r;
            expect("a stream's result", pinned[s][i] == x);
        }
    }

    // stream 1 waits for stream 0 by an event
    hipEvent_t begin, done;
    HIP_OK(hipEventCreate(&begin));
    HIP_OK(hipEventCreate(&done));
    HIP_OK(hipEventRecord(begin, streams[0]));
    spin<<<1, 64, 0, streams[0]>>>(device[0], 200000);
    multiply_add<<<1, 64, 0, streams[0]>>>(device[0], 64, 1, 1);
    HIP_OK(hipEventRecord(done, streams[0]));
    HIP_OK(hipStreamWaitEvent(streams[1], done, 0));
    multiply_add<<<1, 64, 0, streams[1]>>>(device[0], 64, 2, 0);
    HIP_OK(hipMemcpyAsync(pinned[1], device[0], 64 * 4, hipMemcpyDeviceToHost, streams[1]));
    HIP_OK(hipStreamSynchronize(streams[1]));
    for (int i = 0; i < 64; ++i) {
        std::uint32_t x = i + 1;
        for (int r = 0; r < 200000; ++r) x = x * 1664525u + 1013904223u;
        expect("the order across streams", pinned[1][i] == (x + 1) * 2);
    }
    HIP_OK(hipEventQuery(done));
    float milliseconds = 0;
    HIP_OK(hipEventElapsedTime(&milliseconds, begin, done));
    expect("the event time is positive", milliseconds > 0 && milliseconds < 60000);
    std::printf("between the events: %.3f ms\n", milliseconds);
    for (int s = 0; s < count; ++s) {
        HIP_OK(hipFree(device[s]));
        HIP_OK(hipHostFree(pinned[s]));
        HIP_OK(hipStreamDestroy(streams[s]));
    }
    HIP_OK(hipEventDestroy(begin));
    HIP_OK(hipEventDestroy(done));
    return passed("streams");
}
