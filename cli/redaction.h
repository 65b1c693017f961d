// SPDX-License-Identifier: MIT
//
// Removes secrets and names of host and users from a bug report; in doubt too much. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

/// Replaced as whole words, except "root", "localhost" and names shorter than three letters.
struct Identity {
    std::string host;
    std::vector<std::string> users;
};

/// Whether a value of this name may be secret: password, token, key, … Also for parts of names.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// HOST for the host, USER for users and homes.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// A configuration (JSON with comments) without comments and with "(removed)" for possible secrets;
/// none if not JSON. In texts removes passwords in addresses (scheme://user:password@,
/// https://token@), the word after Bearer and Basic, text after '=' or ':' next to a secret's name,
/// and in argument lists the word after a secret's option. Numbers, names and order stay.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
