// SPDX-License-Identifier: MIT
#include "daemon/service/input/options.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

namespace vgpu::daemon {

namespace {

/// The D-Bus type of `value` for error texts, such as "b". For an integer, the widest type ("x" or
/// "t"), because Value does not keep the width that the caller sent.
std::string type_text(const Value& value) {
    struct Namer {
        std::string operator()(bool) const { return "b"; }
        std::string operator()(std::int64_t) const { return "x"; }
        std::string operator()(std::uint64_t) const { return "t"; }
        std::string operator()(double) const { return "d"; }
        std::string operator()(const std::string&) const { return "s"; }
    };
    return std::visit(Namer{}, value);
}

tl::unexpected<Error> wrong_type(const std::string& name, std::string_view expected,
                                 const Value& value) {
    return fail(ErrorId::WrongType, fmt::format("option '{}' must be {}, not a value of type '{}'",
                                                name, expected, type_text(value)));
}

tl::unexpected<Error> out_of_range(const std::string& name, Range range, const std::string& value) {
    const std::string expected = range.max == UINT64_MAX
                                     ? fmt::format("{} or more", range.min)
                                     : fmt::format("within {}..{}", range.min, range.max);
    return fail(ErrorId::OutOfRange,
                fmt::format("option '{}' is {}, not {}", name, value, expected));
}

}  // namespace

Result<> OptionReader::only(std::span<const std::string_view> known) const {
    for (const auto& [name, value] : options_) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        // Clip the option's name, because the caller may have sent a long one.
        constexpr std::size_t kMaxNameBytes = 40;
        const std::string shown(start_of(name, kMaxNameBytes));
        const std::string all = known.empty()
                                    ? "there are no options"
                                    : fmt::format("the options are: {}", fmt::join(known, ", "));
        return fail(ErrorId::UnknownOption, fmt::format("this request has no option '{}'{}; {}",
                                                        shown, did_you_mean(shown, known), all));
    }
    return {};
}

Result<std::optional<std::uint64_t>> OptionReader::number(const std::string& name,
                                                          Range range) const {
    const Value* value = find(name);
    if (value == nullptr) return std::optional<std::uint64_t>{};
    const auto* with_sign = std::get_if<std::int64_t>(value);
    // Refuse negative numbers before the conversion, which would turn them into large numbers.
    if (with_sign != nullptr && *with_sign < 0)
        return out_of_range(name, range, std::to_string(*with_sign));
    const auto* plain = std::get_if<std::uint64_t>(value);
    if (with_sign == nullptr && plain == nullptr)
        return wrong_type(name, "a whole number (u, t, i or x)", *value);
    const std::uint64_t number = plain != nullptr ? *plain : static_cast<std::uint64_t>(*with_sign);
    if (number < range.min || number > range.max)
        return out_of_range(name, range, std::to_string(number));
    return std::optional(number);
}

Result<std::optional<double>> OptionReader::real(const std::string& name, double min,
                                                 double max) const {
    const Value* value = find(name);
    if (value == nullptr) return std::optional<double>{};
    double number = 0;
    if (const auto* real = std::get_if<double>(value))
        number = *real;
    else if (const auto* with_sign = std::get_if<std::int64_t>(value))
        number = static_cast<double>(*with_sign);
    else if (const auto* plain = std::get_if<std::uint64_t>(value))
        number = static_cast<double>(*plain);
    else
        return wrong_type(name, "a number (d, u, t, i or x)", *value);
    if (number >= min && number <= max) return std::optional(number);
    return fail(ErrorId::OutOfRange,
                fmt::format("option '{}' is {:g}, not within {:g}..{:g}", name, number, min, max));
}

Result<std::optional<std::string>> OptionReader::text(const std::string& name) const {
    const Value* value = find(name);
    if (value == nullptr) return std::optional<std::string>{};
    if (const auto* text = std::get_if<std::string>(value)) return std::optional(*text);
    return wrong_type(name, "a string (s)", *value);
}

Result<bool> OptionReader::flag(const std::string& name) const {
    const Value* value = find(name);
    if (value == nullptr) return false;
    if (const auto* flag = std::get_if<bool>(value)) return *flag;
    return wrong_type(name, "a boolean (b)", *value);
}

const Value* OptionReader::find(const std::string& name) const {
    const auto at = options_.find(name);
    return at == options_.end() ? nullptr : &at->second;
}

}  // namespace vgpu::daemon
