// SPDX-License-Identifier: MIT
//
// Random words as LLVM's disassembler reads them and as we do: VGPU_ISA_WORDS of them, or as many
// as VGPU_ISA_SECONDS allow, from VGPU_ISA_SEED. Portions are drawn, read and compared one by one,
// each CPU on its own, so memory does not grow with their number; a portion's words depend on the
// seed and its number alone.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/isa/decode.h"
#include "tests/support/isa/disassemble.h"
#include "tests/unit/isa/llvm_text.h"
#include "tests/unit/isa/opcode_numbers.h"

namespace vgpu::softgpu::isa {
namespace {

using test::bytes_text;
using test::has_llvm_mc;
using test::llvm_texts;
using test::LlvmText;
using test::Words;
using namespace test_numbers;

// ---- drawing

/// An instruction of a random opcode of a random encoding, with random operands.
Words steered_words(std::mt19937& generator) {
    const auto draw = [&] { return static_cast<std::uint32_t>(generator()); };
    const Numbers& numbers = kNumbers[draw() % std::size(kNumbers)];
    const std::uint32_t op_bits = put(numbers.op, (1u << numbers.op.count) - 1);
    const std::uint32_t op = put(numbers.op, draw() % numbers.end);
    std::uint32_t free = draw() & ~op_bits;
    std::uint32_t second = draw();
    // LLVM refuses unused fields that are not zero: clear some bytes more often than not.
    for (unsigned byte = 0; byte < 4; ++byte)
        if (draw() % 4 == 0) second &= ~(0xffu << (8 * byte));
    if (draw() % 2 == 0) free &= draw();
    if (draw() % 2 == 0) free = 0xff & draw();
    // LLVM wants every field of ds_nop to be zero, and of ds_gws_sema_v all but gds.
    constexpr std::uint32_t one_bare_in = 8, gds = 1u << 16;
    if (draw() % one_bare_in == 0) {
        free &= gds;
        second = 0;
    }
    const bool has_parts = numbers.encoding == Encoding::Vop1 ||
                           numbers.encoding == Encoding::Vop2 || numbers.encoding == Encoding::Vopc;
    if (has_parts && draw() % 2 == 0) {
        free = (free & ~0x1ffu) | (draw() % 2 == 0 ? enc::kSdwa : enc::kDpp);
        second = draw() & ~(draw() % 2 == 0 ? 0u : 0x0060'1000u);
    }
    const std::uint32_t prefix_bits = numbers.encoding == Encoding::Vop2 ? 0x80000000 : 0xfc000000;
    std::uint32_t first = numbers.prefix | op | (free & ~prefix_bits);
    if (numbers.encoding == Encoding::Sop2 || numbers.encoding == Encoding::Sopk)
        first = numbers.prefix | op | (free & 0x007fffff);
    return {first, second};
}

/// Most words of uniform bits are of a few encodings, and illegal: they are every eighth.
Words random_words(std::mt19937& generator) {
    constexpr std::uint32_t one_in = 8;
    if (generator() % one_in != 0) return steered_words(generator);
    return {static_cast<std::uint32_t>(generator()), static_cast<std::uint32_t>(generator())};
}

// ---- comparing

bool has_tfe(const Words& words) {
    const std::uint32_t encoding = words[0] & enc::kMubufMask;
    const bool is_buffer = encoding == enc::kMubuf || encoding == enc::kMtbuf;
    return is_buffer && bits(words[1], enc::kMubufTfe.first, 1) != 0;
}

/// Forms of instructions that are rows which are refused nevertheless.
bool is_refused_form(const Words& words, const std::string& text) {
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    const bool is_global_share = has(" gds") && !text.starts_with("ds_gws_");
    return is_refused_encoding(words[0]) || is_global_share || has(" tfe") || has(" lds") ||
           has("/*") || has("src_pops_exiting_wave_id") || has_tfe(words) ||
           (has("src_lds_direct") && text.starts_with("s_"));
}

/// Fields that LLVM 14 leaves out or reads otherwise than the manual; there, only the mnemonic is
/// compared: the scalar offset beside a constant one, bit 12 of a flat offset, sources that are no
/// vector register where only those can be, groups of four with names of their own.
bool is_read_otherwise(const Words& words, const Instruction& decoded, const std::string& text) {
    const Op op = decoded.op;
    constexpr std::uint32_t first_named = 100, end_named = 108, last_group = 124;
    const auto is_odd_group = [](const Operand& source) {
        const bool is_group = source.kind == OperandKind::Scalar && source.regs == 4;
        const bool is_named =
            (source.value >= first_named && source.value < end_named) || source.value >= last_group;
        return is_group && is_named;
    };
    if (std::ranges::any_of(decoded.src, is_odd_group)) return true;
    if (text.find("null") != std::string::npos) return true;
    if (op == Op::v_cndmask_b32 && decoded.modifier == Modifier::Dpp) return true;

    const OpInfo& row = info(op);
    const bool is_smem = row.encoding == Encoding::Smem;
    const std::uint32_t data =
        std::max<std::uint32_t>(row.result_regs, std::uint32_t{row.data_regs} * row.data_operands);
    if (is_smem && data > 2 && decoded.dst + data > first_named) return true;
    if (is_smem) return bits(words[0], enc::kSmemSoffsetEnable.first, 1) != 0;
    constexpr unsigned flat_top = 12;
    return info(op).encoding == Encoding::Flat && bit(words[0], flat_top);
}

/// Words that LLVM 14 accepts, though no assembler gives them: the GFX6 number of a cache control,
/// a vector register by a scalar's number, a result that is a constant, an SDWA form with the one
/// code that has no meaning, four registers of a sum in the scalar file.
bool is_taken_by_llvm_alone(const Words& words, const LlvmText& llvm) {
    const std::string name = llvm.base_name();
    constexpr std::uint32_t no_meaning = 3;
    const std::size_t behind_name = llvm.text.find(' ');
    const bool is_constant =
        behind_name != std::string::npos && llvm.text.compare(behind_name, 5, " src_") == 0;
    const bool is_sdwa = llvm.mnemonic().ends_with("_sdwa");
    const auto unused = bits(words[1], enc::kSdwaDstUnused.first, enc::kSdwaDstUnused.count);
    const bool has_no_operands = name == "v_nop" || name == "v_clrexcp";
    return has_no_operands || name == "buffer_wbinvl1" || name == "v_mqsad_u32_u8" || is_constant ||
           (name == "v_swap_b32" && !bit(words[0], 8)) || (is_sdwa && unused == no_meaning);
}

/// LLVM shows the sign modifiers of integers as sext(), which only SDWA has; they mean nothing.
std::string without_integer_signs(const LlvmText& llvm) {
    std::string text = llvm.text;
    if (llvm.mnemonic().ends_with("_sdwa")) return text;
    const std::string name = "sext(";
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
        text.erase(text.find(')', at), 1);
        text.erase(at, name.size());
    }
    return text;
}

/// What is different about our reading; nothing if all is the same, or LLVM has no opinion.
std::optional<std::string> difference(const Words& words, const LlvmText& llvm) {
    if (!llvm.is_accepted) return {};
    const Instruction decoded = decode(words);
    if (decoded.op == Op::Illegal) {
        if (is_refused_by_name(llvm.base_name()) || is_refused_form(words, llvm.text)) return {};
        if (is_taken_by_llvm_alone(words, llvm)) return {};
        return "is refused";
    }
    if (llvm.text.find("/*") != std::string::npos) return {};
    const std::string name = info(decoded.op).name;
    const std::string text = disassemble(decoded);
    const bool has_no_operands = info(decoded.op).dst == Type::none && name.starts_with("v_");
    if (has_no_operands) return {};  // LLVM does not look at the field that makes it longer
    if (decoded.size != llvm.bytes) return "has another size: " + text;
    const bool is_name_all = has_symbols(name) || is_read_otherwise(words, decoded, llvm.text);
    const bool is_same =
        is_name_all ? llvm.base_name() == name : without_integer_signs(llvm) == text;
    if (is_same) return {};
    return "reads " + text;
}

// ---- portions

constexpr std::size_t kPortion = 4000;
constexpr std::size_t kFewDifferences = 20;

/// What has been compared so far.
struct Tally {
    std::size_t tried = 0;
    std::size_t compared = 0;  ///< of which LLVM accepts
    std::array<std::size_t, kOpCount> by_row{};
    std::vector<std::string> differences;
};

void compare_portion(std::uint32_t seed, std::uint32_t number, Tally& tally) {
    std::seed_seq sequence{seed, number};
    std::mt19937 generator(sequence);
    std::vector<Words> words;
    while (words.size() < kPortion) words.push_back(random_words(generator));
    const auto texts = llvm_texts(words);
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!texts[i].is_accepted) continue;
        ++tally.compared;
        const Op op = decode(words[i]).op;
        if (op != Op::Illegal) ++tally.by_row[static_cast<std::size_t>(op)];
        const auto wrong = difference(words[i], texts[i]);
        if (wrong) tally.differences.push_back(bytes_text(words[i]) + texts[i].text + " " + *wrong);
    }
    tally.tried += words.size();
}

double limit_from_environment(const char* name, double otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtod(text, nullptr);
}

/// When to stop: after so many words if that is said, else after so many seconds.
class Limit {
public:
    [[nodiscard]] bool is_reached(const Tally& tally) const {
        if (tally.differences.size() >= kFewDifferences) return true;
        if (words_ > 0) return static_cast<double>(tally.tried) >= words_;
        return Seconds(std::chrono::steady_clock::now() - start_) >= seconds_;
    }

private:
    using Seconds = std::chrono::duration<double>;
    const double words_ = limit_from_environment("VGPU_ISA_WORDS", 0);
    const Seconds seconds_{limit_from_environment("VGPU_ISA_SECONDS", 10)};
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// All portions until the limit, on every CPU.
Tally compare_portions(std::uint32_t seed, const Limit& limit) {
    Tally all;
    std::mutex mutex;
    std::atomic<std::uint32_t> next{0};
    const auto work = [&] {
        for (;;) {
            Tally one;
            compare_portion(seed, next++, one);
            const std::lock_guard lock(mutex);
            all.tried += one.tried;
            all.compared += one.compared;
            for (std::size_t i = 0; i < kOpCount; ++i) all.by_row[i] += one.by_row[i];
            std::ranges::move(one.differences, std::back_inserter(all.differences));
            if (limit.is_reached(all)) return;
        }
    };
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
        workers.emplace_back(work);
    workers.clear();
    return all;
}

/// With so many words, chance is no excuse for a row that was never drawn.
constexpr std::size_t kWordsForEveryRow = 1'000'000;

TEST(RandomWords, ReadAsLlvmReadsThem) {
    if (!has_llvm_mc()) GTEST_SKIP() << "llvm-mc-14 is not installed";
    const auto seed = static_cast<std::uint32_t>(limit_from_environment("VGPU_ISA_SEED", 11));
    const Tally tally = compare_portions(seed, Limit{});
    for (const std::string& difference : tally.differences) ADD_FAILURE() << difference;
    EXPECT_GT(tally.compared, tally.tried / 10);
    for (std::size_t i = 0; i < kOpCount && tally.tried >= kWordsForEveryRow; ++i)
        EXPECT_GT(tally.by_row[i], 0u) << info(static_cast<Op>(i)).name << " was never drawn";
    std::printf("%zu words, of which LLVM accepts %zu (seed %u)\n", tally.tried, tally.compared,
                seed);
}

}  // namespace
}  // namespace vgpu::softgpu::isa
