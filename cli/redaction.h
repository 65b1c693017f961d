// SPDX-License-Identifier: MIT
//
// Removes secrets and names of host and users from a bug report; if in doubt, removes too much.
// Pure.
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

/// Whether a value with this name may be secret: password, token, key, … Finds these words also
/// within a name.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Replaces the host by HOST, and users and homes by USER.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// A configuration (JSON with comments) without comments and with "(removed)" for possible secrets;
/// none if it is not JSON. Numbers, names and order stay. In texts it removes passwords in
/// addresses (scheme://user:password@, https://token@), the word after Bearer and Basic, and text
/// after '=' or ':' next to a secret's name; in lists of arguments, the word after a secret's
/// option.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
