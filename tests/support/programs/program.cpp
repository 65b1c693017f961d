// SPDX-License-Identifier: MIT
#include "tests/support/programs/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "tests/support/kernel_oracle.h"

namespace vgpu::test {
namespace {

struct Builder {
    Process& process;
    Load load;
    Place place;

    [[nodiscard]] std::uint32_t scaled(std::uint32_t small, std::uint32_t heavy) const {
        return load == Load::Small ? small : heavy;
    }
    template <typename T> [[nodiscard]] Buffer input(const std::vector<T>& values) const {
        const auto buffer = process.allocate(values.size() * sizeof(T), place);
        buffer.fill_from(std::span<const T>(values));
        return buffer;
    }
    template <typename T>
    [[nodiscard]] Program::Parts parts(Grid grid, const Buffer& output,
                                       const std::vector<T>& expected, KernelArgs arguments) const {
        Program::Parts parts{grid, std::move(arguments), output, {}, {}};
        const auto bytes = std::as_bytes(std::span(expected));
        parts.expected.assign(bytes.begin(), bytes.end());
        parts.first.assign(output.cpu.begin(),
                           output.cpu.begin() + static_cast<std::ptrdiff_t>(bytes.size()));
        return parts;
    }
    template <typename T> [[nodiscard]] Buffer space(const std::vector<T>& expected) const {
        return process.allocate(expected.size() * sizeof(T), place);
    }
};

std::vector<float> floats(std::uint32_t count, float step) {
    std::vector<float> values(count);
    for (std::uint32_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 251) * step - 3.0f;
    return values;
}

std::vector<std::uint32_t> numbers(std::uint32_t count) {
    std::vector<std::uint32_t> values(count);
    for (std::uint32_t i = 0; i < count; ++i) values[i] = i * 2654435761u;
    return values;
}

Grid line(std::uint32_t items, std::uint16_t group = 64) {
    return {.grid = {items, 1, 1}, .group = {group, 1, 1}, .dynamic_group_bytes = 0};
}

Program::Parts make_array_increment(const Builder& b) {
    std::vector<double> x(b.scaled(32, 8192));
    std::iota(x.begin(), x.end(), 0.0);
    const auto buffer = b.input(x);
    return b.parts(line(static_cast<std::uint32_t>(x.size()), 32), buffer,
                   oracle::array_increment(x), args(buffer.address));
}

Program::Parts make_matmul(const Builder& b) {
    const auto n = b.scaled(32, 96);
    const auto a_values = floats(n * n, 0.25f);
    const auto b_values = floats(n * n, 0.5f);
    const auto expected = oracle::matmul(a_values, b_values, n);
    const auto left = b.input(a_values);
    const auto right = b.input(b_values);
    const auto out = b.space(expected);
    const Grid grid{.grid = {n, n, 1}, .group = {16, 16, 1}, .dynamic_group_bytes = 0};
    return b.parts(grid, out, expected, args(left.address, right.address, out.address, n));
}

Program::Parts make_sha256(const Builder& b) {
    const auto items = b.scaled(128, 4096);
    const std::uint32_t base = 1000;
    const auto expected = oracle::sha256(base, items);
    const auto out = b.space(expected);
    return b.parts(line(items), out, expected, args(out.address, base));
}

Program::Parts make_collatz(const Builder& b) {
    const auto expected = oracle::collatz(b.scaled(256, 4096));
    const auto out = b.space(expected);
    return b.parts(line(static_cast<std::uint32_t>(expected.size())), out, expected,
                   args(out.address));
}

Program::Parts make_lds_neighbours(const Builder& b) {
    const auto in = numbers(b.scaled(512, 32768));
    const auto expected = oracle::lds_neighbours(in);
    const auto source = b.input(in);
    const auto out = b.space(expected);
    return b.parts(line(static_cast<std::uint32_t>(in.size()), 256), out, expected,
                   args(source.address, out.address));
}

Program::Parts make_saxpy(const Builder& b) {
    const auto n = b.scaled(1000, 32768);
    const auto x = floats(n, 0.125f);
    const auto y = floats(n, 1.5f);
    const auto expected = oracle::saxpy(x, y, 2.5f);
    const auto from = b.input(x);
    const auto out = b.input(y);
    return b.parts(line(256), out, expected, args(from.address, out.address, 2.5f, n));
}

Program::Parts make_vector_add(const Builder& b) {
    const auto n = b.scaled(1000, 32768);
    const auto x = floats(n, 0.125f);
    const auto y = floats(n, 1.5f);
    const auto expected = oracle::vector_add(x, y);
    const auto left = b.input(x);
    const auto right = b.input(y);
    const auto out = b.space(expected);
    return b.parts(line((n + 63) / 64 * 64), out, expected,
                   args(left.address, right.address, out.address, n));
}

Program::Parts make_scratch(const Builder& b) {
    const auto in = numbers(b.scaled(256, 4096));
    const auto expected = oracle::scratch(in);
    const auto source = b.input(in);
    const auto out = b.space(expected);
    return b.parts(line(static_cast<std::uint32_t>(in.size())), out, expected,
                   args(source.address, out.address));
}

Program::Parts make_long_running(const Builder& b) {
    const auto rounds = b.scaled(4096, 65536);
    const auto expected = oracle::long_running(256, rounds);
    const auto out = b.space(expected);
    const auto progress = b.space(expected);
    return b.parts(line(256), out, expected, args(out.address, progress.address, rounds));
}

using Make = Program::Parts (*)(const Builder&);
const std::map<std::string, Make>& table() {
    static const std::map<std::string, Make> rows{{"array_increment", make_array_increment},
                                                  {"matmul", make_matmul},
                                                  {"sha256", make_sha256},
                                                  {"collatz", make_collatz},
                                                  {"lds_neighbours", make_lds_neighbours},
                                                  {"saxpy", make_saxpy},
                                                  {"vector_add", make_vector_add},
                                                  {"scratch", make_scratch},
                                                  {"long_running", make_long_running}};
    return rows;
}

Program::Parts build(Process& process, const std::string& name, Load load, Place place) {
    const auto row = table().find(name);
    if (row == table().end()) throw VfError("no test program is called " + name);
    return row->second(Builder{process, load, place});
}

}  // namespace

const std::vector<std::string>& Program::demo_names() {
    static const std::vector<std::string> names{"array_increment", "matmul", "sha256", "collatz",
                                                "lds_neighbours"};
    return names;
}

const std::vector<std::string>& Program::names() {
    static const std::vector<std::string> names = [] {
        auto all = demo_names();
        for (const auto& [name, make] : table())
            if (std::ranges::find(all, name) == all.end()) all.push_back(name);
        return all;
    }();
    return names;
}

std::string kernel_file(const std::string& name, Optimised level) {
    return fmt::format("{}/{}.{}.co", VGPU_KERNEL_DIR, name, level == Optimised::O0 ? "O0" : "O3");
}

Program::Program(Process& process, const std::string& name, Load load, Optimised level, Place place)
    : name_(name), kernel_(process.load(kernel_file(name, level), name)) {
    auto parts = build(process, name, load, place);
    grid_ = parts.grid;
    arguments_ = std::move(parts.arguments);
    output_ = parts.output;
    first_ = std::move(parts.first);
    expected_ = std::move(parts.expected);
}

void Program::start(AqlQueue& queue, const Signal& completion) {
    completion.set(1);
    enqueue(queue, completion);
}

void Program::enqueue(AqlQueue& queue, const Signal& completion) {
    std::ranges::copy(first_, output_.cpu.begin());
    queue.dispatch(kernel_, grid_, arguments_, completion);
}

bool Program::is_exact() const {
    return std::memcmp(output_.cpu.data(), expected_.data(), expected_.size()) == 0;
}

std::string Program::difference() const {
    const auto [expected, result] =
        std::mismatch(expected_.begin(), expected_.end(), output_.cpu.begin());
    if (expected == expected_.end()) return {};
    return fmt::format("{}: byte {} is {:#x}, not {:#x}", name_, expected - expected_.begin(),
                       std::to_integer<unsigned>(*result), std::to_integer<unsigned>(*expected));
}

std::string run_programs(Process& process, AqlQueue& queue, const std::vector<std::string>& names,
                         Optimised level) {
    const auto done = process.create_signal();
    for (const auto& name : names) {
        Program program(process, name, Load::Small, level);
        program.start(queue, done);
        try {
            process.wait(done);
        } catch (const VfError& error) {
            return name + ": " + error.what();
        }
        if (!program.is_exact()) return program.difference();
    }
    return {};
}

}  // namespace vgpu::test
