// SPDX-License-Identifier: MIT
//
// VgpudWatch: for a verb that calls vgpud again and again. If vgpud does not run, a call makes the
// bus start vgpud, although an administrator may have stopped it. So the verb asks before each call
// whether vgpud runs, and waits if not.
#pragma once

#include "cli/verbs.h"

#include <ostream>

namespace vgpu::cli {

class VgpudWatch {
public:
    explicit VgpudWatch(Invocation& invocation) : invocation_(invocation) {}

    /// Reports the end of vgpud and its return on the error output.
    [[nodiscard]] bool is_running() {
        const bool is_now = invocation_.service.is_running();
        if (is_now != was_running_)
            invocation_.err << (is_now ? "vgpuctl: vgpud is back\n"
                                       : "vgpuctl: vgpud is gone; waiting until it is back\n");
        was_running_ = is_now;
        return is_now;
    }

private:
    Invocation& invocation_;
    bool was_running_ = true;
};

}  // namespace vgpu::cli
