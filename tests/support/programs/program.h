// SPDX-License-Identifier: MIT
//
// Program: one of the test programs (tests/kernels) with its data in the memory of a process. It
// can be started any number of times: start() puts the output back to its first state and
// dispatches, is_exact() compares the output with what the host computed, bit for bit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/vf_client/process.h"

namespace vgpu::test {

/// Work of one start: Small for a unit test, Heavy for a few milliseconds of a CU.
enum class Load { Small, Heavy };
/// How the kernel was compiled: O0 uses scratch and flat addresses.
enum class Optimised { O0, O3 };

class Program {
public:
    /// Throws VfError for a name that is not in names().
    Program(Process& process, const std::string& name, Load load = Load::Small,
            Optimised level = Optimised::O3, Place place = Place::System);

    /// Sets the signal to 1 and dispatches.
    void start(AqlQueue& queue, const Signal& completion);
    /// Dispatches; the signal, which several programs may share, is left as it is.
    void enqueue(AqlQueue& queue, const Signal& completion);
    [[nodiscard]] bool is_exact() const;
    /// Offset of the first byte that differs, and both values: for messages.
    [[nodiscard]] std::string difference() const;
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const Buffer& output() const { return output_; }

    /// The names of all programs; those of the demo come first.
    [[nodiscard]] static const std::vector<std::string>& names();
    [[nodiscard]] static const std::vector<std::string>& demo_names();

    /// The parts of a program, which a function of the table in program.cpp makes.
    struct Parts {
        Grid grid;
        KernelArgs arguments;
        Buffer output;
        std::vector<std::byte> first;     ///< content of the output before a start
        std::vector<std::byte> expected;  ///< content of the output after it
    };

private:
    std::string name_;
    Kernel kernel_;
    Grid grid_;
    KernelArgs arguments_;
    Buffer output_;
    std::vector<std::byte> first_, expected_;
};

/// Path of a compiled test kernel.
[[nodiscard]] std::string kernel_file(const std::string& name, Optimised level = Optimised::O3);

/// Runs each of `names` once, one after the other, and returns the first failure; empty: all were
/// exact.
[[nodiscard]] std::string run_programs(Process& process, AqlQueue& queue,
                                       const std::vector<std::string>& names,
                                       Optimised level = Optimised::O3);

}  // namespace vgpu::test
