// SPDX-License-Identifier: MIT
//
// Two machines that run one wave, interpreted and translated, in lock step: the same words stopped
// after the same instructions leave the same registers, LDS, memory and results.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/isa/translate/translator.h"
#include "tests/support/isa/disassemble.h"
#include "tests/unit/isa/program_generator.h"
#include "tests/unit/isa/wave_bench.h"

namespace vgpu::test {

using softgpu::isa::CodeMemory;
using softgpu::isa::CodeShare;
using softgpu::isa::Op;
using softgpu::isa::RunResult;
using softgpu::isa::StopReason;
using softgpu::isa::Translation;
using softgpu::isa::Workgroup;

inline constexpr std::size_t kTranslateArena = 512 * 1024;

inline u64 number_from(const char* variable, u64 otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Code memory that translates at the first sight of a block.
struct EagerCode {
    explicit EagerCode(std::size_t chunks = 16, std::uint32_t hot_runs = 0)
        : memory(CodeMemory::create(chunks)), share(**memory, chunks, hot_runs) {}
    Result<std::unique_ptr<CodeMemory>> memory;
    CodeShare share;
};

/// A machine that runs one wave; with `code`, translated.
struct WaveMachine {
    explicit WaveMachine(CodeShare* code) : gpu(kTranslateArena, softgpu::isa::variant(), code) {
        gpu.load_words({kEndpgm}, ProgramGenerator::kVgprs);
        gpu.set_grid({});
        gpu.spec.lds_bytes = 4608;
        program = gpu.allocate(128 * 1024);
        // Rows of words cross a page border.
        constexpr u64 before_border = 160;
        area = (gpu.allocate((kAreaPages + 1) * kPage) + kPage - 1) / kPage * kPage;
        data = area + 2 * kPage - before_border;
        std::mt19937_64 random;
        for (u64 at = area; at < area + kAreaPages * kPage; at += sizeof(u64))
            softgpu::store(gpu.port.bytes(at, sizeof(u64)), 0, random());
    }
    void load(const Words& words, u64 seed) {
        softgpu::isa::start_workgroup(group, gpu.spec, {});
        const auto bytes = std::as_bytes(std::span(words));
        std::ranges::copy(bytes, gpu.port.bytes(program, bytes.size()).begin());
        gpu.epoch.fetch_add(1);
        std::ranges::copy(gpu.port.bytes(area, group.lds.size()), group.lds.begin());
        ProgramGenerator(seed).fill(group.waves[0], data);
        group.waves[0].state.pc = program;
    }
    [[nodiscard]] std::vector<std::byte> state() {
        std::vector<std::byte> out;
        softgpu::Writer writer(out);
        group.save(writer);
        for (const auto memory :
             {gpu.port.bytes(area, kAreaPages * kPage), gpu.port.bytes(FlatPort::kBase, kPage)})
            out.insert(out.end(), memory.begin(), memory.end());
        return out;
    }
    static constexpr u64 kPage = softgpu::mem::Port::kPageBytes, kAreaPages = 8;
    FlatGpu gpu;
    Workgroup group;
    u64 program = 0, area = 0, data = 0;
};

inline std::string text_of(const Words& words) {
    std::string out;
    for (std::size_t at = 0; at < words.size();) {
        const auto decoded = softgpu::isa::decode(std::span(words).subspan(at));
        out += softgpu::isa::disassemble(decoded) + "\n";
        at += decoded.size / 4;
    }
    return out;
}

inline bool is_same(const RunResult& a, const RunResult& b) {
    return a.reason == b.reason && a.retired == b.retired && a.pc == b.pc && a.lane == b.lane &&
           a.fault.kind == b.fault.kind && raw(a.fault.va) == raw(b.fault.va) && a.words == b.words;
}

class Translate : public testing::Test {
protected:
    void SetUp() override {
        if (!softgpu::isa::can_translate()) GTEST_SKIP() << "no AVX-512";
        plain.emplace(nullptr);
        use_code(16);
    }
    void use_code(std::size_t chunks, std::uint32_t hot_runs = 0) {
        translated.reset();
        code.emplace(chunks, hot_runs);
        translated.emplace(&code->share);
    }
    /// Runs both to the end, `budget` instructions at a time.
    void compare(const Words& words, u64 seed, u64 budget) {
        for (WaveMachine* const machine : {&*plain, &*translated}) {
            machine->load(words, seed);
            if (adjust) adjust(*machine);
        }
        for (int steps = 0; steps < 1000; ++steps) {
            const auto want = softgpu::isa::run(plain->group, plain->gpu.context(budget));
            const auto got = softgpu::isa::run(translated->group, translated->gpu.context(budget));
            ASSERT_TRUE(is_same(want, got)) << "seed " << seed << '\n' << text_of(words);
            ASSERT_TRUE(plain->state() == translated->state())
                << "seed " << seed << ", after " << got.retired << '\n'
                << difference() << text_of(words);
            if (want.reason != StopReason::Budget) return;
        }
        FAIL() << "the program does not end, seed " << seed;
    }
    std::string difference() {
        std::string out;
        const auto& a = plain->group.waves[0];
        const auto& b = translated->group.waves[0];
        for (u32 k = 0; k < a.state.scalar.size(); ++k)
            if (a.state.scalar[k] != b.state.scalar[k]) out += "s" + std::to_string(k) + ' ';
        for (u32 row = 0; row < ProgramGenerator::kVgprs; ++row)
            for (u32 l = 0; l < softgpu::isa::kLanes; ++l)
                if (a.vgprs[row].lane[l] != b.vgprs[row].lane[l])
                    out += "v" + std::to_string(row) + '[' + std::to_string(l) + "] " +
                           std::to_string(a.vgprs[row].lane[l]) +
                           " != " + std::to_string(b.vgprs[row].lane[l]) + '\n';
        if (a.state.scc != b.state.scc) out += "scc ";
        return out + '\n';
    }
    /// Called before each program, to set registers and pages.
    std::function<void(WaveMachine&)> adjust;
    std::optional<EagerCode> code;
    std::optional<WaveMachine> plain, translated;
};

}  // namespace vgpu::test
