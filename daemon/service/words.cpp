// SPDX-License-Identifier: MIT
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace vgpu::daemon {

namespace {

constexpr std::size_t kMaxName = 63;
constexpr std::array<std::size_t, 4> kDashesBefore{4, 6, 8, 10};

bool is_dash_before(std::size_t byte) {
    return std::find(kDashesBefore.begin(), kDashesBefore.end(), byte) != kDashesBefore.end();
}

/// Levenshtein distance.
/// Insertions, deletions, exchanges; one row of the matrix at a time.
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

std::optional<std::uint8_t> hex_pair(std::string_view pair) {
    unsigned value = 0;
    for (const char digit : pair) {
        if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) return {};
        const int lower = std::tolower(static_cast<unsigned char>(digit));
        value = value * 16 + static_cast<unsigned>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    return static_cast<std::uint8_t>(value);
}

}  // namespace

std::string_view start_of(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    // 10xxxxxx goes on with a character
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
    return text.substr(0, bytes);
}

std::string printable(std::string_view text) {
    std::string shown(text);
    std::replace_if(
        shown.begin(), shown.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    return shown;
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 3> kUnits{"GiB", "MiB", "KiB"};
    std::uint64_t unit = 1ull << 30;
    for (const std::string_view name : kUnits) {
        if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
        if (bytes >= 2 * unit)
            return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(unit),
                               name);
        unit >>= 10;
    }
    return fmt::format("{} bytes", bytes);
}

std::string uuid_text(const Uuid& uuid) {
    std::string text;
    for (std::size_t i = 0; i < uuid.size(); ++i)
        text += fmt::format("{}{:02x}", is_dash_before(i) ? "-" : "", uuid[i]);
    return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
    Uuid uuid{};
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        if (is_dash_before(i)) {
            if (!text.starts_with('-')) return {};
            text.remove_prefix(1);
        }
        const auto byte = text.size() >= 2 ? hex_pair(text.substr(0, 2)) : std::nullopt;
        if (!byte) return {};
        uuid[i] = *byte;
        text.remove_prefix(2);
    }
    return text.empty() ? std::optional(uuid) : std::nullopt;
}

Uuid make_uuid() {
    constexpr std::size_t kVersionByte = 6, kVariantByte = 8;
    std::random_device random;
    Uuid uuid{};
    for (std::uint8_t& byte : uuid) byte = static_cast<std::uint8_t>(random());
    // Version and variant bits of RFC 4122.
    uuid[kVersionByte] = static_cast<std::uint8_t>((uuid[kVersionByte] & 0x0f) | 0x40);
    uuid[kVariantByte] = static_cast<std::uint8_t>((uuid[kVariantByte] & 0x3f) | 0x80);
    return uuid;
}

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

bool is_valid_name(std::string_view name) {
    if (name.empty() || name.size() > kMaxName || parse_uuid(name)) return false;
    if (std::isalpha(static_cast<unsigned char>(name.front())) == 0) return false;
    return std::all_of(name.begin(), name.end(), [](char letter) {
        return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
               letter == '_' || letter == '.';
    });
}

}  // namespace vgpu::daemon
