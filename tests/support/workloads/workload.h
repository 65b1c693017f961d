// SPDX-License-Identifier: MIT
//
// Workload: a test kernel with its data, the expected output and the amount of work, for any of its
// sizes. It is independent of devices: buffers are vectors of words, and an argument is the index
// of a buffer or a number. The benchmark's workers (tests/bench/peers) place it on softgpu and on
// other OpenCL implementations; a unit test runs every one on the bare engine.
//
// Data are integers, or floats with whole values of less than 24 bits, so that rounding does not
// matter. If devices may round differently, `tolerance` is the limit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vgpu::test {

using WorkWords = std::vector<std::uint32_t>;

struct WorkArgument {
    enum class Kind { Buffer, Number };
    Kind kind = Kind::Number;
    std::uint32_t value = 0;  ///< index of a buffer, or the 32 bits themselves
};

struct Workload {
    std::string kernel;                    ///< name of the kernel and of tests/kernels/NAME.cl
    std::array<std::uint32_t, 2> items{};  ///< work-items in x and y
    std::array<std::uint16_t, 2> group{};  ///< work-items of a group in x and y
    std::vector<WorkWords> buffers;        ///< as they are before the first run
    std::size_t output = 0;                ///< the buffer that the kernel writes
    std::vector<WorkArgument> arguments{};
    /// Content of the output buffer after the requested number of runs.
    WorkWords expected{};
    /// Largest permitted error of an output float, relative to the largest expected one; 0: none.
    float tolerance = 0;
    double work = 0;  ///< units of work in one run
};

/// One row of the table of workloads.
struct WorkloadKind {
    std::string name;
    std::string unit;                  ///< of work: "flop", "hash" ...
    std::vector<std::uint32_t> sizes;  ///< from small to large; the kernel defines what a size is
    /// The workload of `size`, with the result of `runs` runs over the same buffers.
    Workload (*make)(std::uint32_t size, std::uint32_t runs);
};

[[nodiscard]] const std::vector<WorkloadKind>& workload_kinds();

/// Number of words of `output` that are wrong.
[[nodiscard]] std::size_t wrong_words(const Workload& workload,
                                      std::span<const std::uint32_t> output);

}  // namespace vgpu::test
