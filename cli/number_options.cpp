// SPDX-License-Identifier: MIT
#include "cli/number_options.h"

#include "cli/format.h"
#include "text/number.h"

#include <fmt/format.h>
#include <cmath>

namespace vgpu::cli {

namespace {

std::optional<Value> whole_in(std::string_view text) {
    constexpr int kHexadecimal = 16;
    if (text.starts_with("0x")) {
        const auto bits = text::number_in<std::uint64_t>(text.substr(2), kHexadecimal);
        return bits ? std::optional<Value>(*bits) : std::nullopt;
    }
    if (const auto number = text::number_in<std::uint64_t>(text)) return Value{*number};
    if (const auto number = text::number_in<std::int64_t>(text)) return Value{*number};
    return {};
}

std::optional<Value> real_in(std::string_view text) {
    if (auto whole = whole_in(text)) return whole;
    const auto number = text::number_in<double>(text);
    return number && std::isfinite(*number) ? std::optional<Value>(*number) : std::nullopt;
}

CLI::Option* add_number(CLI::App& command, const std::string& name, std::optional<Value>& to,
                        const std::string& help, std::optional<Value> (*read)(std::string_view),
                        std::string_view kind) {
    return command.add_option_function<std::string>(
        name,
        [&to, read, name, kind](const std::string& text) {
            to = read(text);
            if (!to)
                throw CLI::ValidationError(
                    name, fmt::format("must be {}, not '{}'", kind, printable(text)));
        },
        help);
}

}  // namespace

CLI::Option* add_whole(CLI::App& command, const std::string& name, std::optional<Value>& to,
                       const std::string& help) {
    return add_number(command, name, to, help, whole_in, "a whole number");
}

CLI::Option* add_real(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help) {
    return add_number(command, name, to, help, real_in, "a number");
}

CLI::Option* add_size(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help) {
    const auto size_in = [](std::string_view text) {
        const auto bytes = text::parse_size(text);
        return bytes ? std::optional<Value>(*bytes) : std::nullopt;
    };
    return add_number(command, name, to, help, size_in, text::kSizeWords)->type_name("SIZE");
}

CLI::Validator whole_within(std::uint64_t min, std::uint64_t max) {
    return {[min, max](std::string& text) {
                const auto number = text::number_in<std::uint64_t>(text);
                if (!number || *number < min || *number > max)
                    return fmt::format("must be a whole number from {} to {}, not '{}'", min, max,
                                       printable(text));
                text = std::to_string(*number);
                return std::string();
            },
            fmt::format("{}..{}", min, max)};
}

}  // namespace vgpu::cli
