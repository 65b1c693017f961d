// SPDX-License-Identifier: MIT
//
// Removes secrets and names of host and users from a bug report; if in doubt, removes too much.
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

/// Names to replace as whole words, except "root", "localhost" and names shorter than three
/// letters.
struct Identity {
    std::string host;
    std::vector<std::string> users;
};

/// True if a value with this name may be secret: password, token, key, … Finds these words also
/// within a name.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Replaces the host by HOST, and names of users, also any NAME in "/home/NAME", by USER.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// A configuration (JSON with comments) without comments and with "(removed)" for possible secrets;
/// none if it is not JSON. Member names, numbers that are not secret, and the order stay. In texts,
/// removes passwords in addresses (scheme://user:password@, https://token@), the word after Bearer
/// and Basic, and text after '=' or ':' next to the name of a secret. In lists of arguments,
/// removes the word after an option for a secret.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
