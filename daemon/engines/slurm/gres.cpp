// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/gres.h"

#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace vgpu::slurm {

namespace {

/// Far more VFs than a host can have. Limits the memory that profiles_of() uses for its elements,
/// one for each VF.
constexpr std::uint32_t kMaxCount = 65'535;
/// What Slurm prints for an empty list.
constexpr std::string_view kNone = "(null)";

/// The elements of a list. A comma in parentheses does not separate elements.
std::vector<std::string_view> elements_of(std::string_view list) {
    std::vector<std::string_view> all;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        const char letter = i < list.size() ? list[i] : ',';
        if (letter == '(') ++depth;
        if (letter == ')') --depth;
        if (letter != ',' || (depth > 0 && i < list.size())) continue;
        if (i > begin) all.push_back(list.substr(begin, i - begin));
        begin = i + 1;
    }
    return all;
}

/// True if the parentheses are balanced; otherwise elements_of() would split at the wrong commas.
bool is_balanced(std::string_view list) {
    int depth = 0;
    for (const char letter : list) {
        if (letter == '(') ++depth;
        if (letter == ')' && --depth < 0) return false;
    }
    return depth == 0;
}

/// True for "vgpu", "vgpu:small:8" and "vgpu(…", but not for "vgpu2:1".
bool is_vgpu(std::string_view element) {
    return element.starts_with(kGres) &&
           (element.size() == kGres.size() || element[kGres.size()] == ':' ||
            element[kGres.size()] == '(');
}

/// Reads "vgpu:small:8", "vgpu:small:8(IDX:0-7)" or "vgpu:small(CNT:8)". Returns the profile and
/// the number of VFs.
Result<std::pair<std::string, std::uint32_t>> read_element(std::string_view element) {
    constexpr std::string_view kCount = "(CNT:";
    const std::size_t parenthesis = std::min(element.find('('), element.size());
    std::string_view head = element.substr(0, parenthesis);
    const std::string_view details = element.substr(parenthesis);
    std::string_view number;
    if (details.starts_with(kCount) && details.ends_with(')')) {
        number = details.substr(kCount.size(), details.size() - kCount.size() - 1);
    } else if (const std::size_t colon = head.rfind(':'); colon != std::string_view::npos) {
        number = head.substr(colon + 1);
        head = head.substr(0, colon);
    }
    const auto count = text::number_in<std::uint32_t>(number);
    const bool has_type = head.size() > kGres.size() + 1;
    if (!has_type || !count || *count > kMaxCount)
        return fail(ErrorId::BadConfiguration,
                    fmt::format("GRES '{}' is not {}:PROFILE:NUMBER with a number up to {}",
                                element.substr(0, kMaxShown), kGres, kMaxCount));
    return std::pair(std::string(head.substr(kGres.size() + 1)), *count);
}

std::string text_of(const Counts& counts) {
    std::string text;
    for (const auto& [profile, count] : counts)
        text += fmt::format("{}{}:{}:{}", text.empty() ? "" : ",", kGres, profile, count);
    return text;
}

}  // namespace

Result<Counts> read_gres(std::string_view list) {
    if (!is_balanced(list))
        return fail(
            ErrorId::BadConfiguration,
            fmt::format("GRES '{}' has parentheses that do not match", list.substr(0, kMaxShown)));
    Counts counts;
    for (const std::string_view element : elements_of(list)) {
        if (!is_vgpu(element)) continue;
        TRY(const auto one, read_element(element));
        std::uint32_t& count = counts[one.first];
        count = std::min(count + one.second, kMaxCount);
    }
    return counts;
}

bool has_vfs(std::string_view list) {
    constexpr std::string_view kPrefix = "gres:", kNewPrefix = "gres/";
    for (std::string_view element : elements_of(list)) {
        if (element.starts_with(kPrefix) || element.starts_with(kNewPrefix))
            element.remove_prefix(kPrefix.size());
        if (is_vgpu(element) && !element.ends_with(":0")) return true;
    }
    return false;
}

std::string with_counts(std::string_view list, const Counts& counts) {
    Counts all = counts;
    std::string text;
    for (const std::string_view element : elements_of(list)) {
        if (element == kNone) continue;
        if (is_vgpu(element)) {
            if (const auto one = read_element(element)) all.try_emplace(one->first, 0);
            continue;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ",", element);
    }
    const std::string own = text_of(all);
    return text.empty() || own.empty() ? text + own : text + "," + own;
}

std::vector<std::string> profiles_of(const Counts& counts) {
    std::vector<std::string> all;
    for (const auto& [profile, count] : counts) all.insert(all.end(), count, profile);
    return all;
}

std::string configuration_of(const std::string& node, const Counts& counts) {
    std::string text = fmt::format(
        "# slurm.conf: add to the line NodeName={}\nGres={}\n\n"
        "# gres.conf\n",
        node, text_of(counts));
    for (const auto& [profile, count] : counts)
        text += fmt::format("NodeName={} Name={} Type={} Count={}\n", node, kGres, profile, count);
    return text;
}

}  // namespace vgpu::slurm
