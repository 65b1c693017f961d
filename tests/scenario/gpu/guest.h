// SPDX-License-Identifier: MIT
//
// Guest: a booted driver with one process and one AQL queue, the start of most scenario tests.
#pragma once

#include "tests/support/programs/program.h"
#include "tests/support/stack/gpu_stack.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::test {

struct Guest {
    explicit Guest(const GpuStack& stack, std::uint32_t vf, VfClientOptions options = {})
        : client(stack.vf_socket(vf), options) {
        client.boot();
        process = &client.create_process();
        queue = &process->create_queue();
    }

    /// Runs the demo's programs; empty if all results are exact.
    [[nodiscard]] std::string run_all() {
        return run_programs(*process, *queue, Program::demo_names());
    }

    VfClient client;
    Process* process = nullptr;
    AqlQueue* queue = nullptr;
};

/// Starts a kernel that never ends; its waves count up words of the buffer that is returned.
[[nodiscard]] inline Buffer start_endless(Guest& guest, std::uint32_t waves = 4) {
    const auto kernel = guest.process->load(kernel_file("endless"), "endless");
    const auto progress = guest.process->allocate(4096);
    guest.queue->dispatch(kernel, {.grid = {waves * 64, 1, 1}, .group = {64, 1, 1}},
                          args(progress.address));
    return progress;
}

/// Waits until the counter at `progress` has moved on.
inline void wait_progress(const Buffer& progress, milliseconds limit = milliseconds(10000)) {
    const auto before = progress.load<std::uint32_t>();
    wait_for("the kernel to make progress", limit,
             [&] { return progress.load<std::uint32_t>() != before; });
}

}  // namespace vgpu::test
