// SPDX-License-Identifier: MIT
//
// Options of a request: a{sv} in D-Bus, converted to Values. OptionReader checks them. The error
// for an unknown option lists the known options and suggests a similar one, if any; the error for a
// wrong type or value names the right type or range.
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

/// The value of an option. An integer of D-Bus becomes std::int64_t if its type is signed, else
/// std::uint64_t.
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
/// Values by name.
using Options = std::map<std::string, Value>;

/// A range of numbers, both ends included.
struct Range {
    std::uint64_t min = 0;
    std::uint64_t max = UINT64_MAX;
};

/// Reads options, which must outlive the reader.
class OptionReader {
public:
    explicit OptionReader(const Options& options) : options_(options) {}

    [[nodiscard]] bool has(const std::string& name) const { return options_.contains(name); }
    /// Fails with UnknownOption if an option is not in `known`.
    [[nodiscard]] Result<> only(std::span<const std::string_view> known) const;

    /// Reads a whole number. None if the option is absent. Fails with WrongType or OutOfRange.
    [[nodiscard]] Result<std::optional<std::uint64_t>> number(const std::string& name,
                                                              Range range) const;
    /// As number(), but the number may have a fraction, and must be from `min` to `max`.
    [[nodiscard]] Result<std::optional<double>> real(const std::string& name, double min,
                                                     double max) const;
    /// None if the option is absent. Fails with WrongType.
    [[nodiscard]] Result<std::optional<std::string>> text(const std::string& name) const;
    /// False if the option is absent. Fails with WrongType.
    [[nodiscard]] Result<bool> flag(const std::string& name) const;

private:
    [[nodiscard]] const Value* find(const std::string& name) const;

    const Options& options_;
};

}  // namespace vgpu::daemon
