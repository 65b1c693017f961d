// SPDX-License-Identifier: MIT
//
// Speed of the execution engine on one thread: wave instructions per second of compiled kernels,
// for each build of the execute unit (0, 1) and translated (2). Run on demand; not part of the
// gate.
#include <benchmark/benchmark.h>

#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Variant;

/// One dispatch per iteration; counts executed wave64 instructions.
void run_dispatches(benchmark::State& state, FlatGpu& gpu) {
    std::uint64_t retired = 0;
    for (auto _ : state) retired += gpu.dispatch().retired;
    state.counters["inst/s"] =
        benchmark::Counter(static_cast<double>(retired), benchmark::Counter::kIsRate);
}

Variant variant_of(const benchmark::State& state) {
    return state.range(0) == 0 ? Variant::Baseline : Variant::Avx2;
}

/// nullptr: the interpreter runs everything.
softgpu::isa::CodeShare* code_of(const benchmark::State& state) {
    static const auto memory = softgpu::isa::CodeMemory::create(4);
    static softgpu::isa::CodeShare share(**memory, 4);
    return state.range(0) == 2 ? &share : nullptr;
}

void saxpy(benchmark::State& state) {
    constexpr std::uint32_t n = 1u << 18;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("saxpy", 3);
    gpu.set_arguments(gpu.allocate(n * 4), gpu.allocate(n * 4), 1.5f, n);
    gpu.set_grid({{256, 1, 1}, {n / 4, 1, 1}});
    run_dispatches(state, gpu);
}

void matmul(benchmark::State& state) {
    constexpr std::uint32_t n = 128;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("matmul", 3);
    gpu.set_arguments(gpu.allocate(n * n * 4), gpu.allocate(n * n * 4), gpu.allocate(n * n * 4), n);
    gpu.set_grid({{16, 16, 1}, {n, n, 1}});
    run_dispatches(state, gpu);
}

void matmul_global(benchmark::State& state) {
    constexpr std::uint32_t n = 128;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("matmul_global", 3);
    gpu.set_arguments(gpu.allocate(n * n * 4), gpu.allocate(n * n * 4), gpu.allocate(n * n * 4), n);
    gpu.set_grid({{16, 16, 1}, {n, n, 1}});
    run_dispatches(state, gpu);
}

void stencil(benchmark::State& state) {
    constexpr std::uint32_t width = 1024, rows = 64, border = 2;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("stencil", 3);
    gpu.set_arguments(gpu.allocate((width + border) * (rows + border) * 4),
                      gpu.allocate(width * rows * 4), width);
    gpu.set_grid({{256, 1, 1}, {width, rows, 1}});
    run_dispatches(state, gpu);
}

void sha256(benchmark::State& state) {
    constexpr std::uint32_t items = 4096;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("sha256", 3);
    gpu.set_arguments(gpu.allocate(items * 32), 0u);
    gpu.set_grid({{256, 1, 1}, {items, 1, 1}});
    run_dispatches(state, gpu);
}

void long_running(benchmark::State& state) {
    constexpr std::uint32_t items = 1024;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("long_running", 3);
    gpu.set_arguments(gpu.allocate(items * 4), gpu.allocate(items * 4), 2000u);
    gpu.set_grid({{256, 1, 1}, {items, 1, 1}});
    run_dispatches(state, gpu);
}

void collatz(benchmark::State& state) {
    constexpr std::uint32_t items = 4096;
    FlatGpu gpu(64u << 20, variant_of(state), code_of(state));
    gpu.load_kernel("collatz", 3);
    gpu.set_arguments(gpu.allocate(items * 4));
    gpu.set_grid({{256, 1, 1}, {items, 1, 1}});
    run_dispatches(state, gpu);
}

/// One wave of a long kernel whose code was just invalidated: decoded again, and with range 3
/// every block is also translated before it runs.
void first_run(benchmark::State& state) {
    static const auto memory = softgpu::isa::CodeMemory::create(8);
    static softgpu::isa::CodeShare eager(**memory, 8, 0);
    FlatGpu gpu(64u << 20, Variant::Avx2, state.range(0) == 3 ? &eager : nullptr);
    gpu.load_kernel("sha256", 3);
    gpu.set_arguments(gpu.allocate(64 * 32), 0u);
    gpu.set_grid({});
    std::uint64_t retired = 0;
    for (auto _ : state) {
        gpu.epoch.fetch_add(1);
        retired += gpu.dispatch().retired;
    }
    state.counters["inst/s"] =
        benchmark::Counter(static_cast<double>(retired), benchmark::Counter::kIsRate);
}

BENCHMARK(saxpy)->DenseRange(0, 2);
BENCHMARK(matmul)->DenseRange(0, 2);
BENCHMARK(matmul_global)->DenseRange(0, 2);
BENCHMARK(stencil)->DenseRange(0, 2);
BENCHMARK(sha256)->DenseRange(0, 2);
BENCHMARK(long_running)->DenseRange(0, 2);
BENCHMARK(collatz)->DenseRange(0, 2);
BENCHMARK(first_run)->Arg(1)->Arg(3);

}  // namespace
}  // namespace vgpu::test

BENCHMARK_MAIN();
