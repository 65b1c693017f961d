// SPDX-License-Identifier: MIT
//
// Workload: a test kernel with data for any of its sizes, what it must compute, and how much work
// that is. It knows nothing of devices: buffers are vectors of words, arguments say which buffer or
// number goes where. The benchmark's workers (tests/bench/peers) place it on softgpu and on other
// OpenCL implementations; a unit test runs every one on the bare engine.
//
// Data are integers, or floats that integers of less than 24 bits stand behind, so that the order
// of rounding cannot matter. Where a device may round as it likes, tolerance says how far.
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
    std::array<std::uint16_t, 2> group{};  ///< of them in a group
    std::vector<WorkWords> buffers;        ///< as they are before the first run
    std::size_t output = 0;                ///< the buffer that the kernel writes
    std::vector<WorkArgument> arguments{};
    /// What the output holds after the runs that were asked for.
    WorkWords expected{};
    /// Largest difference of a float of the output, relative to the largest; 0: bit for bit.
    float tolerance = 0;
    double work = 0;  ///< units in one run
};

/// One row of the table of workloads.
struct WorkloadKind {
    std::string name;
    std::string unit;                  ///< of work: "flop", "hash" ...
    std::vector<std::uint32_t> sizes;  ///< from small to large; what a size is, the kernel says
    /// The workload of `size`, with the result of `runs` runs over the same buffers.
    Workload (*make)(std::uint32_t size, std::uint32_t runs);
};

[[nodiscard]] const std::vector<WorkloadKind>& workload_kinds();

/// Words of `output` that are not what they must be.
[[nodiscard]] std::size_t wrong_words(const Workload& workload,
                                      std::span<const std::uint32_t> output);

}  // namespace vgpu::test
