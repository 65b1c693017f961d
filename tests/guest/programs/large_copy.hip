// SPDX-License-Identifier: MIT
// Copies of many megabytes between the device and unpinned memory of the process, whole and in
// pieces of 4 MiB, at offsets that are not multiples of a page. The driver maps contiguous pages of
// the process as one run.
#include "check.h"

constexpr std::uint32_t kFactor = 2654435761u;

__global__ void fill(std::uint32_t* out, std::size_t count) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x)
        out[i] = static_cast<std::uint32_t>(i) * kFactor;
}

__global__ void differ(const std::uint32_t* in, std::size_t count, std::uint32_t* wrong) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x)
        if (in[i] != static_cast<std::uint32_t>(i) * kFactor) atomicAdd(wrong, 1u);
}

int main() {
    const std::size_t count = (24u << 20) / 4 + 4099, piece = (4u << 20) / 4;
    std::vector<std::uint32_t> want(count);
    for (std::size_t i = 0; i < count; ++i) want[i] = static_cast<std::uint32_t>(i) * kFactor;
    DeviceArray<std::uint32_t> device(count), wrong(1);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{953}, std::size_t{300001}}) {
        fill<<<64, 256>>>(device.data(), count);
        std::vector<std::uint32_t> memory(count + offset, 0xdeadbeefu);
        HIP_OK(hipMemcpy(memory.data() + offset, device.data(), count * 4, hipMemcpyDeviceToHost));
        std::vector<std::uint32_t> got(memory.begin() + static_cast<std::ptrdiff_t>(offset),
                                       memory.end());
        expect_same("whole copy from the device", got, want);

        std::fill(memory.begin(), memory.end(), 0xdeadbeefu);
        for (std::size_t at = 0; at < count; at += piece) {
            const std::size_t words = count - at < piece ? count - at : piece;
            HIP_OK(hipMemcpy(memory.data() + offset + at, device.data() + at, words * 4,
                             hipMemcpyDeviceToHost));
        }
        got.assign(memory.begin() + static_cast<std::ptrdiff_t>(offset), memory.end());
        expect_same("copy in pieces", got, want);

        HIP_OK(hipMemset(device.data(), 0, count * 4));
        HIP_OK(hipMemset(wrong.data(), 0, 4));
        HIP_OK(hipMemcpy(device.data(), memory.data() + offset, count * 4, hipMemcpyHostToDevice));
        differ<<<64, 256>>>(device.data(), count, wrong.data());
        expect_same("copy to the device", wrong.read(), std::vector<std::uint32_t>{0});
    }
    return passed("large_copy");
}
