// SPDX-License-Identifier: MIT
#include "tests/unit/isa/llvm_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <sstream>

namespace vgpu::test {

namespace {

/// Stands behind every candidate, so that what LLVM prints can be told apart.
constexpr std::uint32_t kMarker = 0xbf805a5a;
constexpr std::string_view kMarkerText = "s_nop 0x5a5a";

std::string one_blank(const std::string& line) {
    std::istringstream in(line);
    std::string out;
    for (std::string part; in >> part;) out += (out.empty() ? "" : " ") + part;
    return out;
}

/// Lines (from 1) of the input to the columns at which LLVM complained.
std::map<std::size_t, std::vector<std::size_t>> complaints(const std::string& path) {
    std::map<std::size_t, std::vector<std::size_t>> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::size_t end = line.find(": warning: invalid instruction encoding");
        if (end == std::string::npos) continue;
        const std::size_t column = line.rfind(':', end - 1);
        const std::size_t number = line.rfind(':', column - 1);
        out[std::stoul(line.substr(number + 1))].push_back(std::stoul(line.substr(column + 1)));
    }
    return out;
}

/// What was printed for each candidate, up to its marker.
std::vector<std::vector<std::string>> groups(const std::string& path, std::size_t count) {
    std::vector<std::vector<std::string>> out(count);
    std::ifstream file(path);
    std::size_t k = 0;
    for (std::string line; std::getline(file, line) && k < count;) {
        const std::string text = one_blank(line);
        if (text.empty() || text == ".text") continue;
        if (text == kMarkerText)
            ++k;
        else
            out[k].push_back(text);
    }
    return out;
}

/// One run of llvm-mc; false if it died. In brackets, no instruction reads on in the next line.
constexpr std::size_t kFirstColumn = 2;

bool run_llvm(std::span<const Words> candidates, std::span<LlvmText> out) {
    static std::atomic<unsigned> runs{0};
    const std::string base =
        testing::TempDir() + fmt::format("isa_words.{}.{}", getpid(), runs.fetch_add(1));
    {
        std::ofstream file(base);
        for (const Words& words : candidates)
            file << "[" << bytes_text(words) << "]\n[" << bytes_text({kMarker}) << "]\n";
    }
    const std::string command = fmt::format(
        "llvm-mc-14 -arch=amdgcn -mcpu=gfx900 --disassemble {0} >{0}.out 2>{0}.err", base);
    const int status = std::system(command.c_str());
    const auto refused = complaints(base + ".err");
    const auto printed = groups(base + ".out", candidates.size());
    for (const char* end : {"", ".out", ".err"}) unlink((base + end).c_str());
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return false;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
        const auto found = refused.find(2 * k + 1);
        const bool complains = found != refused.end();
        out[k].is_accepted =
            !printed[k].empty() && !(complains && found->second.front() == kFirstColumn);
        if (!out[k].is_accepted) continue;
        out[k].text = printed[k].front();
        const bool is_short = candidates[k].size() == 1 || complains || printed[k].size() > 1;
        out[k].bytes = is_short ? 4 : 8;
    }
    return true;
}

/// Halves a portion on which LLVM dies until the words that it cannot stand are alone.
void run_halved(std::span<const Words> candidates, std::span<LlvmText> out) {
    if (candidates.empty() || run_llvm(candidates, out)) return;
    if (candidates.size() == 1) return;
    const std::size_t half = candidates.size() / 2;
    run_halved(candidates.first(half), out.first(half));
    run_halved(candidates.subspan(half), out.subspan(half));
}

}  // namespace

std::string LlvmText::base_name() const {
    std::string name = mnemonic();
    for (const std::string_view suffix : {"_e32", "_e64", "_sdwa", "_dpp"})
        if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    return name;
}

bool has_llvm_mc() {
    static const bool found = std::system("llvm-mc-14 --version >/dev/null 2>&1") == 0;
    return found;
}

std::string bytes_text(const Words& words) {
    std::string out;
    for (const std::uint32_t word : words)
        for (unsigned i = 0; i < 4; ++i) out += fmt::format("0x{:02x} ", (word >> (8 * i)) & 0xff);
    return out;
}

std::vector<LlvmText> llvm_texts(const std::vector<Words>& candidates) {
    constexpr std::size_t portion = 4000;
    std::vector<LlvmText> out(candidates.size());
    for (std::size_t first = 0; first < candidates.size(); first += portion) {
        const std::size_t count = std::min(portion, candidates.size() - first);
        run_halved(std::span(candidates).subspan(first, count),
                   std::span(out).subspan(first, count));
    }
    return out;
}

}  // namespace vgpu::test
