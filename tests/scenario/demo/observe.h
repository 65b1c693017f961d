// SPDX-License-Identifier: MIT
//
// observe(): the table and the picture of the demo for VFs that other programs drive, such as the
// guests of `tests/demo --vm`. They must all be busy from before the call until it returns.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::demo {

struct ObserveOptions {
    std::string uapi_socket;
    std::map<std::uint32_t, std::uint64_t> weights;  ///< by VF
    std::uint32_t quantum_us = 0;
    std::uint64_t quanta = 200;  ///< quanta of the smallest VF before shares are judged
    std::string timeline;        ///< SVG file to write
};

/// Number of claims that did not hold.
[[nodiscard]] int observe(const ObserveOptions& options);

}  // namespace vgpu::demo
