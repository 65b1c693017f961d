// SPDX-License-Identifier: MIT
//
// Options of a request (the a{sv} tail of every method), checked in one place: unknown ones are
// refused with the nearest known name, types and ranges with what would be right. The D-Bus layer
// turns variants into Values; OptionReader turns Values into numbers the service trusts.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::daemon {

using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
using Options = std::map<std::string, Value>;

/// Both ends are within it.
struct Range {
    std::uint64_t least = 0;
    std::uint64_t most = UINT64_MAX;
};

/// Refers to the options: made and used within one call.
class OptionReader {
public:
    explicit OptionReader(const Options& options) : options_(options) {}

    /// UnknownOption if there is an option that is not in `known`.
    [[nodiscard]] Result<> only(std::span<const std::string_view> known) const;

    /// Nothing if the option is not there; WrongType or OutOfRange if it is no such value.
    [[nodiscard]] Result<std::optional<std::uint64_t>> number(const std::string& name,
                                                              Range range) const;
    /// A number with or without a fraction.
    [[nodiscard]] Result<std::optional<double>> real(const std::string& name, double least,
                                                     double most) const;
    [[nodiscard]] Result<std::optional<std::string>> text(const std::string& name) const;
    /// False if the option is not there.
    [[nodiscard]] Result<bool> flag(const std::string& name) const;

private:
    [[nodiscard]] const Value* find(const std::string& name) const;

    const Options& options_;
};

}  // namespace vgpu::daemon
