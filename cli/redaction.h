// SPDX-License-Identifier: MIT
//
// Removes secrets, and the names of the host and its users, from texts of a bug report. Removes too
// much rather than too little. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

/// Names that without_names() replaces where they are whole words. "root", "localhost" and names
/// shorter than three letters stay.
struct Identity {
    std::string host;
    std::vector<std::string> users;
};

/// True if `name` is a secret name: it contains "passw", "token", "key" or a similar word, so its
/// value may be a secret.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Replaces the host's name by HOST, and names of users by USER. Replaces NAME in "/home/NAME" by
/// USER even if the name is not in `identity`.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// Returns a configuration (JSON with comments) without comments, and with "(removed)" in place of
/// possible secrets; none if `text` is not JSON. Names and order of members stay. Removes:
///   - values of members with a secret name;
///   - passwords and tokens in addresses (scheme://user:password@host, https://token@host);
///   - the word after "Bearer" or "Basic";
///   - the rest of a text after '=' or ':', if the text before the sign contains a secret name;
///   - the rest of a text after '=', if the rest contains a secret name;
///   - in lists (command lines), the item after -p, -u or an option with a secret name.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
