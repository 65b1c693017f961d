// SPDX-License-Identifier: MIT
//
// Random programs for tests that compare two ways to run code: valid instructions of all operations
// that translated code knows and of some that it does not, forward branches, loops that end, loads,
// stores and LDS. Registers hold values at which operations differ: zeros, denormals, infinities,
// NaNs, bounds of integers.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "pf-driver/softgpu/isa/wave.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {

class ProgramGenerator {
public:
    static constexpr std::uint32_t kVgprs = 48;
    /// Pair of scalar registers with the address of the data that programs load and store.
    static constexpr std::uint32_t kDataPair = 80;
    /// Programs reach this many bytes in front of that address, and behind it.
    static constexpr std::uint32_t kDataBytes = 4096;

    explicit ProgramGenerator(std::uint64_t seed) : random_(seed) {}

    /// One instruction of the operation with random operands; nothing if the encoding is not
    /// covered or gives no legal instruction.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> instruction(softgpu::isa::Op op);
    /// A program of about `size` instructions, ended by s_endpgm.
    [[nodiscard]] std::vector<std::uint32_t> program(std::size_t size);
    /// Random registers, EXEC and VCC; addresses of `data` in several patterns.
    void fill(softgpu::isa::Wave& wave, std::uint64_t data);
    /// MODE as most kernels have it, now and then with other rounding or denormals.
    [[nodiscard]] std::uint32_t mode();

private:
    std::uint32_t below(std::uint32_t end) {
        return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_);
    }
    std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
    std::uint32_t value();
    std::uint64_t lanes();
    std::uint32_t scalar_source();
    std::uint32_t vector_source();
    std::uint32_t scalar_result();
    [[nodiscard]] std::vector<std::uint32_t> short_form(softgpu::isa::Op op, std::uint32_t result);
    [[nodiscard]] std::vector<std::uint32_t> three_sources(std::uint32_t code, std::uint32_t result,
                                                           bool has_mask);
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> checked(
        std::vector<std::uint32_t> words, softgpu::isa::Op op);
    [[nodiscard]] std::vector<std::uint32_t> any();
    [[nodiscard]] std::vector<std::uint32_t> straight(std::size_t size);
    [[nodiscard]] std::vector<std::uint32_t> memory();
    [[nodiscard]] std::vector<std::uint32_t> vector_memory(softgpu::isa::Op op);
    [[nodiscard]] std::vector<std::uint32_t> local_memory(softgpu::isa::Op op);
    [[nodiscard]] std::vector<std::uint32_t> scalar_memory(softgpu::isa::Op op);
    [[nodiscard]] std::int32_t place(std::uint32_t pattern, std::uint32_t lane,
                                     std::uint32_t first);
    void fill_addresses(softgpu::isa::Wave& wave, std::uint64_t data);
    [[nodiscard]] std::vector<std::uint32_t> exec_change();

    std::mt19937_64 random_;
};

}  // namespace vgpu::test
