// SPDX-License-Identifier: MIT
//
// Removes from a bug report the secrets of the configuration and the names of the host and its
// users. In doubt it removes too much rather than too little. Pure; used by BugReport.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

/// Names that are replaced wherever they occur as a word.
/// Names shorter than three letters, "root" and "localhost" stay: they occur in too many texts.
struct Identity {
    std::string host;
    std::vector<std::string> users;
};

/// True if the value of this name may be a secret: password, token, key, …
/// Ignores case and matches parts of a name, so "monkey" counts as a secret as well.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// `text` with HOST for the host, and USER for people and their homes.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// A configuration (JSON with comments) without its comments, with "(removed)" for every value that
/// may be a secret; empty if it is not JSON.
/// Removes within texts: passwords of addresses (scheme://user:password@, https://token@), the word
/// after Bearer and Basic, the text after '=' or ':' if a secret's name is before it (or after
/// '='), and in lists of arguments the word after an option for a secret. Indentation changes;
/// numbers, names and order of members stay.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
