// SPDX-License-Identifier: MIT
//
// What must not leave a machine in a bug report: secrets of the configuration, the names of the
// host and of the people who use it. Rather too much is removed than too little. Pure; used by
// BugReport.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::cli {

/// Names that are replaced wherever they stand as a word.
/// Names shorter than three letters, "root" and "localhost" are left: they stand in too many words.
struct Identity {
    std::string host;
    std::vector<std::string> users;
};

/// True if what stands under this name may be a secret: password, token, key, …
/// In any case and as a part of a longer name: "monkey" is taken for a secret, too.
[[nodiscard]] bool is_secret_name(std::string_view name);

/// `text` with the host as HOST, people and their homes as USER.
[[nodiscard]] std::string without_names(const std::string& text, const Identity& identity);

/// A configuration (JSON with comments) without its comments, with "(removed)" for every value that
/// may be a secret; nothing if it is no JSON.
/// Within texts: passwords of addresses (scheme://user:password@, https://token@), what follows
/// Bearer and Basic, what follows '=' or ':' if a secret's name is before it (or behind '='), and
/// in lists of arguments what follows an option for a secret. Indented anew; numbers, names and
/// order of members stay.
[[nodiscard]] std::optional<std::string> redacted_configuration(const std::string& text);

}  // namespace vgpu::cli
