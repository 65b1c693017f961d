// SPDX-License-Identifier: MIT
#include "text/nearest.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace vgpu::text {

namespace {

/// Levenshtein distance: the least number of insertions, deletions and replacements of bytes that
/// turn `a` into `b`. Keeps only one row of the matrix.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string_view candidate : known) {
        const std::size_t away = distance(word, candidate);
        if (away >= best_distance) continue;
        best = candidate;
        best_distance = away;
    }
    return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

}  // namespace vgpu::text
