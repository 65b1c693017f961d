// SPDX-License-Identifier: MIT
#include "text/uuid.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <random>

namespace vgpu::text {

namespace {

/// Indexes of the bytes that follow a dash.
constexpr std::array<std::size_t, 4> kDashesBefore{4, 6, 8, 10};

bool is_dash_before(std::size_t byte) {
    return std::find(kDashesBefore.begin(), kDashesBefore.end(), byte) != kDashesBefore.end();
}

/// The byte that two hexadecimal digits name; none for other characters.
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
    // version and variant bits of RFC 4122
    uuid[kVersionByte] = static_cast<std::uint8_t>((uuid[kVersionByte] & 0x0f) | 0x40);
    uuid[kVariantByte] = static_cast<std::uint8_t>((uuid[kVariantByte] & 0x3f) | 0x80);
    return uuid;
}

}  // namespace vgpu::text
