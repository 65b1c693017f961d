// SPDX-License-Identifier: MIT
//
// Measures the execution engine on one thread: wave instructions per second of compiled kernels,
// for each build of the execute unit (0: baseline, 1: AVX2) and translated (2). Run on demand; not
// part of the gate.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "pf-driver/softgpu/isa/translate/code_memory.h"
#include "pf-driver/softgpu/isa/translate/translator.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Variant;

/// Makes one dispatch per iteration and counts executed wave64 instructions.
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

/// Each dispatch decodes the kernel again.
void dispatch_undecoded(benchmark::State& state, FlatGpu& gpu) {
    std::uint64_t retired = 0;
    for (auto _ : state) {
        gpu.epoch.fetch_add(1);
        retired += gpu.dispatch().retired;
    }
    state.counters["inst/s"] =
        benchmark::Counter(static_cast<double>(retired), benchmark::Counter::kIsRate);
}

/// Runs one wave of a long kernel whose code was just invalidated, so that it is decoded again.
/// With range 3, every block is also translated before it runs.
void first_run(benchmark::State& state) {
    static const auto memory = softgpu::isa::CodeMemory::create(8);
    static softgpu::isa::CodeShare eager(**memory, 8, 0);
    FlatGpu gpu(64u << 20, Variant::Avx2, state.range(0) == 3 ? &eager : nullptr);
    gpu.load_kernel("sha256", 3);
    gpu.set_arguments(gpu.allocate(64 * 32), 0u);
    gpu.set_grid({});
    dispatch_undecoded(state, gpu);
}

using Words = std::vector<std::uint32_t>;
constexpr std::uint32_t kEndpgm = 0xbf810000;
const Words kSum{0x02080702};               // v_add_f32 v4, v2, v3
const Words kLoad{0xdc5c0000, 0x08000000};  // flat_load_dwordx4 v[8:11], v[0:1]

/// `times` copies of an instruction.
Words repeat(const Words& instruction, std::size_t times) {
    Words out;
    for (std::size_t k = 0; k < times; ++k)
        out.insert(out.end(), instruction.begin(), instruction.end());
    return out;
}

/// Translates a block of 32 equal instructions. `longest_step_us` is the longest time that a stop
/// has to wait. Each step counts with its fastest run, so that other programs do not disturb the
/// figure.
void translate_block(benchmark::State& state, const Words& instruction) {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<double, std::micro>;
    static const auto memory = softgpu::isa::CodeMemory::create(8);
    static softgpu::isa::CodeShare share(**memory, 8);
    FlatGpu gpu(1u << 20, Variant::Avx2, &share);
    Words words = repeat(instruction, softgpu::isa::DecodeCache::kBlockInstructions);
    words.push_back(kEndpgm);
    gpu.load_words(words, 32);
    softgpu::isa::Block& block = *gpu.cache.find(gpu.spec.entry, gpu.port);
    softgpu::isa::Translator translator(share);
    std::vector<double> steps;
    double whole = std::numeric_limits<double>::max();
    for (auto _ : state) {
        const auto start = Clock::now();
        auto last = start;
        std::size_t step = 0;
        const auto end_step = [&] {
            const auto now = Clock::now();
            const double took = Microseconds(now - last).count();
            if (step == steps.size()) steps.push_back(took);
            steps[step] = std::min(steps[step], took);
            ++step;
            last = now;
            return false;
        };
        if (translator.translate(block, 0xf0, end_step) != softgpu::isa::Translation::Done) {
            translator.reset();
            continue;
        }
        (void)end_step();
        whole = std::min(whole, Microseconds(last - start).count());
    }
    state.counters["block_us"] = whole;
    state.counters["longest_step_us"] = *std::ranges::max_element(steps);
}

/// Runs a new kernel whose hot block runs `range(1)` times as often as a block must run to be
/// translated. range(0): 1 interprets, 2 also translates. Each dispatch finds the caches empty.
void first_result(benchmark::State& state, const Words& instruction) {
    constexpr std::size_t loop_words = 3;
    static const auto memory = softgpu::isa::CodeMemory::create(8);
    static softgpu::isa::CodeShare share(**memory, 8);
    FlatGpu gpu(1u << 20, Variant::Avx2, state.range(0) == 2 ? &share : nullptr);
    const std::uint64_t data = gpu.allocate(4096);
    Words words{0x7e0002ff, static_cast<std::uint32_t>(data),        // v_mov_b32 v0
                0x7e0202ff, static_cast<std::uint32_t>(data >> 32),  // v_mov_b32 v1
                0xbe9400ff};                                         // s_mov_b32 s20
    words.push_back((share.hot_runs() + 2) * static_cast<std::uint32_t>(state.range(1)));
    const Words body =
        repeat(instruction, softgpu::isa::DecodeCache::kBlockInstructions - loop_words);
    words.insert(words.end(), body.begin(), body.end());
    const auto back = static_cast<std::uint32_t>(body.size() + loop_words);
    for (const std::uint32_t word : {0x80948114u,                       // s_sub_u32 s20, s20, 1
                                     0xbf078014u,                       // s_cmp_lg_u32 s20, 0
                                     0xbf850000u | (-back & 0xffffu)})  // s_cbranch_scc1
        words.push_back(word);
    words.push_back(kEndpgm);
    gpu.load_words(words, 32);
    gpu.set_grid({});
    dispatch_undecoded(state, gpu);
}

BENCHMARK_CAPTURE(translate_block, sums, kSum);
BENCHMARK_CAPTURE(translate_block, loads, kLoad);
BENCHMARK_CAPTURE(first_result, sums, kSum)->ArgsProduct({{1, 2}, {1, 2, 5, 10}});
BENCHMARK_CAPTURE(first_result, loads, kLoad)->ArgsProduct({{1, 2}, {1, 2, 5, 10}});
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
