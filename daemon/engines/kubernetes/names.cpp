// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/names.h"

#include "text/uuid.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

namespace vgpu::kubernetes {

namespace {

constexpr std::string_view kLife = ".0";
constexpr std::size_t kMaxLabel = 63, kMaxSubdomain = 253;

bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

char lower(char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

}  // namespace

std::string device_name_of(std::string_view target) {
    std::string name(target);
    for (char& c : name) c = is_letter_or_digit(lower(c)) ? lower(c) : '-';
    return name;
}

std::string variable_of(std::string_view prefix, std::string_view device) {
    std::string name = fmt::format("{}_{}", prefix, device);
    for (char& c : name)
        c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

bool is_label(std::string_view word) {
    if (word.empty() || word.size() > kMaxLabel) return false;
    return word.front() != '-' && word.back() != '-' &&
           std::ranges::all_of(word, [](char c) { return c == '-' || is_letter_or_digit(c); });
}

bool is_subdomain(std::string_view name) {
    if (name.size() > kMaxSubdomain) return false;
    for (;;) {
        const std::size_t dot = name.find('.');
        if (!is_label(name.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        name.remove_prefix(dot + 1);
    }
}

std::string owner_of(std::string_view cluster, std::string_view uid) {
    return fmt::format("k8s:{}:{}{}", cluster, uid, kLife);
}

std::optional<std::string> uid_of(std::string_view owner, std::string_view cluster) {
    const std::string prefix = fmt::format("k8s:{}:", cluster);
    if (!owner.starts_with(prefix) || !owner.ends_with(kLife)) return {};
    owner.remove_prefix(prefix.size());
    owner.remove_suffix(kLife.size());
    if (!text::parse_uuid(owner)) return {};
    return std::string(owner);
}

}  // namespace vgpu::kubernetes
