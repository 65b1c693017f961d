// SPDX-License-Identifier: MIT
#include "text/size.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <system_error>

namespace vgpu::text {

namespace {

struct Unit {
    std::string_view name, letter;
    unsigned shift;  ///< log2 of the bytes in the unit
};

constexpr std::array kUnits{Unit{"TiB", "T", 40}, Unit{"GiB", "G", 30}, Unit{"MiB", "M", 20},
                            Unit{"KiB", "K", 10}};

/// log2 of the bytes in the unit `word`; none if `word` is not a unit.
std::optional<unsigned> shift_of(std::string_view word) {
    if (word.empty() || word == "B" || word == "bytes") return 0;
    for (const Unit& unit : kUnits)
        if (word == unit.name || word == unit.letter) return unit.shift;
    return {};
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error != std::errc{}) return {};
    std::string_view word(end, static_cast<std::size_t>(last - end));
    if (word.starts_with(' ') && word.size() > 1) word.remove_prefix(1);
    const auto shift = shift_of(word);
    if (!shift || number > (UINT64_MAX >> *shift)) return {};
    return number << *shift;
}

std::string size_text(std::uint64_t bytes) {
    for (const Unit& unit : kUnits) {
        const std::uint64_t unit_bytes = 1ull << unit.shift;
        if (bytes >= unit_bytes && bytes % unit_bytes == 0)
            return fmt::format("{} {}", bytes / unit_bytes, unit.name);
        if (bytes >= 2 * unit_bytes)
            return fmt::format("{:.1f} {}",
                               static_cast<double>(bytes) / static_cast<double>(unit_bytes),
                               unit.name);
    }
    return fmt::format("{} B", bytes);
}

std::string exact_size_text(std::uint64_t bytes) {
    for (const Unit& unit : kUnits)
        if (bytes > 0 && bytes % (1ull << unit.shift) == 0)
            return fmt::format("{}{}", bytes >> unit.shift, unit.name);
    return fmt::format("{}B", bytes);
}

}  // namespace vgpu::text
