// SPDX-License-Identifier: MIT
// Streams that wait for values in memory and write them; host functions; allocation in stream
// order.
#include "check.h"

#include <atomic>
#include <chrono>
#include <thread>

__global__ void add(std::uint32_t* x, std::uint32_t addend) {
    x[threadIdx.x] += addend;
}

void note(void* text) {
    static_cast<std::atomic<int>*>(text)->fetch_add(1);
}

int main() {
    hipStream_t first, second;
    HIP_OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP_OK(hipStreamCreateWithPriority(&second, hipStreamNonBlocking, -1));
    std::uint32_t* flag = nullptr;
    HIP_OK(hipExtMallocWithFlags(reinterpret_cast<void**>(&flag), 8, hipMallocSignalMemory));
    *reinterpret_cast<std::uint64_t*>(flag) = 0;
    std::vector<std::uint32_t> want(64, 100);
    DeviceArray<std::uint32_t> x(want);

    HIP_OK(hipStreamWaitValue32(first, flag, 5, hipStreamWaitValueGte, 0xffffffff));
    add<<<1, 64, 0, first>>>(x.data(), 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    expect("the first stream waits", hipStreamQuery(first) == hipErrorNotReady);
    add<<<1, 64, 0, second>>>(x.data(), 1);
    HIP_OK(hipStreamWriteValue32(second, flag, 5, 0));
    HIP_OK(hipStreamSynchronize(first));
    for (auto& value : want) value += 8;
    expect_same("after the wait", x.read(), want);

    std::atomic<int> notes{0};
    for (int i = 0; i < 5; ++i) {
        add<<<1, 64, 0, first>>>(x.data(), 1);
        HIP_OK(hipLaunchHostFunc(first, note, &notes));
    }
    HIP_OK(hipStreamSynchronize(first));
    expect("host functions ran", notes == 5);

    for (int i = 0; i < 20; ++i) {
        void* piece = nullptr;
        HIP_OK(hipMallocAsync(&piece, (1 + i) << 12, first));
        HIP_OK(hipMemsetAsync(piece, i, 256, first));
        add<<<1, 64, 0, first>>>(static_cast<std::uint32_t*>(piece), 1);
        std::uint32_t got = 0;
        HIP_OK(hipMemcpyAsync(&got, piece, 4, hipMemcpyDeviceToHost, first));
        HIP_OK(hipFreeAsync(piece, first));
        HIP_OK(hipStreamSynchronize(first));
        expect("a piece in stream order", got == i * 0x01010101u + 1);
    }
    HIP_OK(hipFree(flag));
    HIP_OK(hipStreamDestroy(first));
    HIP_OK(hipStreamDestroy(second));
    std::puts("ok stream_values");
}
