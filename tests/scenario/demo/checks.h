// SPDX-License-Identifier: MIT
//
// Checks: the demo's verdict. Every claim is printed once, with what was seen; the exit status is 0
// only if all of them held.
#pragma once

#include <fmt/format.h>

#include <string>

namespace vgpu::demo {

class Checks {
public:
    void claim(bool holds, const std::string& what, const std::string& seen) {
        fmt::print("  {:<6} {}{}{}\n", holds ? "ok" : "FAILED", what, seen.empty() ? "" : ": ",
                   seen);
        std::fflush(stdout);
        failed_ += holds ? 0 : 1;
    }
    [[nodiscard]] int failed() const { return failed_; }

private:
    int failed_ = 0;
};

}  // namespace vgpu::demo
