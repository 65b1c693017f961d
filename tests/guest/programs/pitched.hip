// SPDX-License-Identifier: MIT
// Copies and fills of rectangles and boxes, in both directions and on the device.
#include "check.h"

int main() {
    const int width = 100, height = 37, depth = 5;
    std::vector<std::uint8_t> host(width * height * depth), back(host.size());
    Random random(3);
    for (auto& byte : host) byte = random.next();

    std::uint8_t *plane = nullptr, *other = nullptr;
    std::size_t pitch = 0, other_pitch = 0;
    HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&plane), &pitch, width, height));
    HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&other), &other_pitch, width + 300, height));
    HIP_OK(hipMemcpy2D(plane, pitch, host.data(), width, width, height, hipMemcpyHostToDevice));
    HIP_OK(
        hipMemcpy2D(other + 3, other_pitch, plane, pitch, width, height, hipMemcpyDeviceToDevice));
    HIP_OK(hipMemcpy2D(back.data(), width, other + 3, other_pitch, width, height,
                       hipMemcpyDeviceToHost));
    expect("a plane there and back",
           std::equal(back.begin(), back.begin() + width * height, host.begin()));
    HIP_OK(hipMemset2D(plane + 11, pitch, 0xa5, 50, 20));
    HIP_OK(hipMemcpy2D(back.data(), width, plane, pitch, width, height, hipMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const bool is_filled = x >= 11 && x < 61 && y < 20;
            expect("a filled rectangle",
                   back[y * width + x] == (is_filled ? 0xa5 : host[y * width + x]));
        }

    hipPitchedPtr box{};
    const hipExtent extent = make_hipExtent(width, height, depth);
    HIP_OK(hipMalloc3D(&box, extent));
    hipMemcpy3DParms copy{};
    copy.srcPtr = make_hipPitchedPtr(host.data(), width, width, height);
    copy.dstPtr = box;
    copy.extent = extent;
    copy.kind = hipMemcpyHostToDevice;
    HIP_OK(hipMemcpy3D(&copy));
    copy.srcPtr = box;
    copy.dstPtr = make_hipPitchedPtr(back.data(), width, width, height);
    copy.kind = hipMemcpyDeviceToHost;
    HIP_OK(hipMemcpy3D(&copy));
    expect_same("byte of the box", back, host);
    HIP_OK(hipMemset3D(box, 0x3c, make_hipExtent(width, height, 2)));
    HIP_OK(hipMemcpy3D(&copy));
    for (std::size_t i = 0; i < back.size(); ++i)
        expect("a filled box", back[i] == (i < std::size_t{2} * width * height ? 0x3c : host[i]));
    HIP_OK(hipFree(box.ptr));
    HIP_OK(hipFree(plane));
    HIP_OK(hipFree(other));
    std::puts("ok pitched");
}
