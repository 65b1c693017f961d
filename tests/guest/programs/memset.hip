// SPDX-License-Identifier: MIT
// hipMemset of bytes, shorts and words, 2D fills and copies with pitch, odd sizes and offsets.
#include "check.h"

int main() {
    const std::size_t size = 100003;
    DeviceArray<std::uint8_t> bytes(size);
    std::vector<std::uint8_t> want(size, 0xa5);
    HIP_OK(hipMemset(bytes.data(), 0xa5, size));
    expect_same("memset", bytes.read(), want);

    HIP_OK(hipMemset(bytes.data() + 1001, 0x3c, 777));
    std::fill(want.begin() + 1001, want.begin() + 1778, 0x3c);
    HIP_OK(hipMemsetD16(reinterpret_cast<hipDeviceptr_t>(bytes.data() + 4096), 0x1234, 33));
    for (int i = 0; i < 33; ++i) {
        want[4096 + 2 * i] = 0x34;
        want[4097 + 2 * i] = 0x12;
    }
    HIP_OK(hipMemsetD32(reinterpret_cast<hipDeviceptr_t>(bytes.data() + 8192), 0x89abcdef, 17));
    for (int i = 0; i < 17; ++i) {
        const std::uint8_t word[] = {0xef, 0xcd, 0xab, 0x89};
        std::memcpy(&want[8192 + 4 * i], word, 4);
    }
    expect_same("fills at offsets", bytes.read(), want);

    const std::size_t width = 100, height = 37;
    std::size_t pitch = 0;
    std::uint8_t* image = nullptr;
    HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&image), &pitch, width, height));
    HIP_OK(hipMemset2D(image, pitch, 0x11, width, height));
    std::vector<std::uint8_t> rows(width * height), upper(40 * 10);
    for (std::size_t i = 0; i < upper.size(); ++i) upper[i] = static_cast<std::uint8_t>(i * 7);
    HIP_OK(hipMemcpy2D(image + 3 * pitch + 20, pitch, upper.data(), 40, 40, 10,
                       hipMemcpyHostToDevice));
    HIP_OK(hipMemcpy2D(rows.data(), width, image, pitch, width, height, hipMemcpyDeviceToHost));
    std::vector<std::uint8_t> expected(width * height, 0x11);
    for (int y = 0; y < 10; ++y) std::copy_n(&upper[y * 40], 40, &expected[(y + 3) * width + 20]);
    expect_same("2D copy", rows, expected);
    HIP_OK(hipFree(image));

    DeviceArray<std::uint8_t> second(size);
    HIP_OK(hipMemcpy(second.data(), bytes.data(), size, hipMemcpyDeviceToDevice));
    expect_same("copy on the device", second.read(), want);
    return passed("memset");
}
