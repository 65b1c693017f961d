// SPDX-License-Identifier: MIT
//
// A worker of the comparison: a process that runs workloads on one implementation and reports how
// long each took and how many words were wrong. compare.py starts one worker per implementation and
// asks them in turn, so that a stall of the machine affects all. One JSON object a line:
//
//   worker                            {"ready":"softgpu, 2 threads","workloads":[{"name":...,
//                                      "unit":...,"sizes":[...]}]}
//   {"workload":"saxpy","size":4096,"runs":8}
//                                  -> {"seconds":0.1,"work":65536,"wrong_words":0,
//                                      "wave_instructions":123}
//   a request that cannot be done  -> {"error":"..."}
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/workloads/workload.h"

namespace vgpu::test {

/// An implementation under measurement. One thread uses it; errors are exceptions.
class Machine {
public:
    Machine() = default;
    virtual ~Machine() = default;
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    [[nodiscard]] virtual std::string description() const = 0;
    /// Replaces the kernel and buffers of the last workload.
    virtual void place(const Workload& workload) = 0;
    /// Gives the buffers their content before the first run.
    virtual void refill(const Workload& workload) = 0;
    /// Makes `runs` dispatches, one after the other; returns when the last has completed.
    virtual void run(std::uint32_t runs) = 0;
    [[nodiscard]] virtual WorkWords output() = 0;
    /// Wave64 instructions retired since the start; none if the implementation does not count them.
    [[nodiscard]] virtual std::optional<std::uint64_t> wave_instructions() { return {}; }
};

/// Answers requests from standard input until it ends; returns the worker's exit status.
int serve(Machine& machine);

}  // namespace vgpu::test
