// SPDX-License-Identifier: MIT
#include "cli/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace vgpu::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRemoved = "(removed)";

/// '-' and '.' end a word: a host's name is also found in "host-1" and "host.example".
bool is_word_letter(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// `name` replaced by `by` where it stands as a word.
std::string replaced(std::string text, const std::string& name, const std::string& by) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
        const std::size_t end = at + name.size();
        const bool is_word = (at == 0 || !is_word_letter(text[at - 1])) &&
                             (end == text.size() || !is_word_letter(text[end]));
        if (is_word) text.replace(at, name.size(), by);
        at += is_word ? by.size() : 1;
    }
    return text;
}

/// "/home/NAME" as "/home/USER", whoever that is.
/// For users whose names nobody has told us.
std::string without_homes(std::string text) {
    constexpr std::string_view kHome = "/home/", kUser = "USER";
    for (std::size_t at = text.find(kHome); at != std::string::npos; at = text.find(kHome, at)) {
        at += kHome.size();
        std::size_t end = at;
        while (end < text.size() &&
               (is_word_letter(text[end]) || text[end] == '-' || text[end] == '.'))
            ++end;
        if (end > at) text.replace(at, end - at, kUser);
    }
    return text;
}

/// Removes what is secret, at any depth. A secret may itself be an object or list: all of it goes.
void redact(Json& json);

/// Arguments: "--token=x" is cut, what follows "--token" is removed.
/// An option that takes no value makes the next word a victim: too much rather than too little.
void redact_list(Json& list) {
    bool is_next_secret = false;
    for (Json& item : list) {
        if (!item.is_string()) {
            redact(item);
            is_next_secret = false;
            continue;
        }
        const std::string text = item.get<std::string>();
        const std::size_t equals = text.find('=');
        const bool is_secret = is_secret_name(text.substr(0, equals));
        if (is_next_secret)
            item = kRemoved;
        else if (is_secret && equals != std::string::npos)
            item = text.substr(0, equals + 1) + kRemoved;
        is_next_secret = !is_next_secret && is_secret && equals == std::string::npos;
    }
}

void redact(Json& json) {
    if (json.is_array()) return redact_list(json);
    if (!json.is_object()) return;
    for (auto& [name, value] : json.items()) {
        if (is_secret_name(name))
            value = kRemoved;
        else
            redact(value);
    }
}

}  // namespace

bool is_secret_name(std::string_view name) {
    constexpr std::array<std::string_view, 8> kWords{"secret", "token",  "passw", "passphrase",
                                                     "key",    "cookie", "auth",  "credential"};
    std::string low(name);
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return std::any_of(kWords.begin(), kWords.end(), [&low](std::string_view word) {
        return low.find(word) != std::string::npos;
    });
}

std::string without_names(const std::string& text, const Identity& identity) {
    constexpr std::size_t kShortest = 3;  // shorter ones are parts of everything
    std::string clean = without_homes(text);
    if (identity.host.size() >= kShortest && identity.host != "localhost")
        clean = replaced(std::move(clean), identity.host, "HOST");
    for (const std::string& user : identity.users)
        if (user.size() >= kShortest && user != "root")
            clean = replaced(std::move(clean), user, "USER");
    return clean;
}

std::optional<std::string> redacted_configuration(const std::string& text) {
    constexpr bool kThrows = false, kHasComments = true;
    Json json = Json::parse(text, nullptr, kThrows, kHasComments);
    if (json.is_discarded()) return {};
    redact(json);
    return json.dump(2) + "\n";
}

}  // namespace vgpu::cli
