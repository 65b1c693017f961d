// SPDX-License-Identifier: MIT
#include "daemon/service/input/json_section.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// Shortens a text that an error text quotes, because a hostile value may be long.
std::string clip(std::string text) {
    constexpr std::size_t kMaxValueBytes = 60;
    return text.size() <= kMaxValueBytes ? text
                                         : std::string(start_of(text, kMaxValueBytes)) + "...";
}

}  // namespace

std::string shown(const nlohmann::json& value) {
    if (value.is_structured()) return value.is_array() ? "a list" : "an object";
    return clip(value.dump());
}

JsonSection::JsonSection(const nlohmann::json& json, std::string path, Error& error)
    : json_(json), path_(std::move(path)), error_(error) {
    if (!json_.is_object()) complain("", "is not an object");
}

void JsonSection::only(std::initializer_list<std::string_view> known) {
    only(std::vector<std::string_view>(known));
}

void JsonSection::only(const std::vector<std::string_view>& known) {
    if (!json_.is_object()) return;
    for (const auto& [key, value] : json_.items()) {
        if (has_complained()) return;
        if (std::find(known.begin(), known.end(), key) == known.end())
            complain(clip(key),
                     fmt::format("is unknown{}; known: {}", did_you_mean(clip(key), known),
                                 fmt::join(known, ", ")));
    }
}

void JsonSection::number(const std::string& key, Bounds bounds, std::uint32_t& to) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < bounds.min ||
        value->get<std::uint64_t>() > bounds.max)
        complain(key, fmt::format("must be a whole number within {}..{}, not {}", bounds.min,
                                  bounds.max, shown(*value)));
    else
        to = value->get<std::uint32_t>();
}

void JsonSection::real(const std::string& key, double min, double max, double& to) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number() || !(value->get<double>() >= min && value->get<double>() <= max))
        complain(key, fmt::format("must be a number within {:g}..{:g}, not {}", min, max,
                                  shown(*value)));
    else
        to = value->get<double>();
}

void JsonSection::text(const std::string& key, std::string& to) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string() || value->get<std::string>().empty())
        complain(key, fmt::format("must be a non-empty string, not {}", shown(*value)));
    else
        to = value->get<std::string>();
}

void JsonSection::flag(const std::string& key, bool& to) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean())
        complain(key, fmt::format("must be true or false, not {}", shown(*value)));
    else
        to = value->get<bool>();
}

void JsonSection::texts(const std::string& key, std::vector<std::string>& to) {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return;
    const bool is_right =
        value->is_array() && std::all_of(value->begin(), value->end(),
                                         [](const nlohmann::json& one) { return one.is_string(); });
    if (!is_right)
        complain(key, "must be a list of strings");
    else
        to = value->get<std::vector<std::string>>();
}

const nlohmann::json* JsonSection::find(const std::string& key) const {
    if (!json_.is_object()) return nullptr;
    const auto at = json_.find(key);
    return at == json_.end() ? nullptr : &*at;
}

void JsonSection::complain(const std::string& key, const std::string& what) {
    if (!error_.cause.empty()) return;
    error_.cause = fmt::format("{} {}", key.empty() ? path_ : path_of(key), what);
}

}  // namespace vgpu::daemon
