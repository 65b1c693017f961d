// SPDX-License-Identifier: MIT
//
// A worker of the comparison: a process that runs workloads on one implementation and says how long
// each took and whether every bit was right. compare.py starts one per implementation and asks them
// in turn, so that a stall of the machine hits all alike. One JSON object a line:
//
//   worker                            {"ready":"softgpu, 2 threads","workloads":[{"name":...,
//                                      "unit":...,"sizes":[...]}]}
//   {"workload":"saxpy","size":4096,"runs":8}
//                                  -> {"seconds":0.1,"work":65536,"wrong_words":0,
//                                      "wave_instructions":123}
//   anything it cannot do          -> {"error":"..."}
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/workloads/workload.h"

namespace vgpu::test {

/// An implementation under measurement. Used by one thread; says by exceptions what went wrong.
class Machine {
public:
    Machine() = default;
    virtual ~Machine() = default;
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    [[nodiscard]] virtual std::string description() const = 0;
    /// Kernel and buffers in place of the last workload's.
    virtual void place(const Workload& workload) = 0;
    /// Buffers as they are before the first run.
    virtual void refill(const Workload& workload) = 0;
    /// As many dispatches, one after the other; returns when the last has completed.
    virtual void run(std::uint32_t runs) = 0;
    [[nodiscard]] virtual WorkWords output() = 0;
    /// Wave64 instructions retired since the start, where the implementation counts them.
    [[nodiscard]] virtual std::optional<std::uint64_t> wave_instructions() { return {}; }
};

/// Answers requests from standard input until it ends; exit status of the worker.
int serve(Machine& machine);

}  // namespace vgpu::test
