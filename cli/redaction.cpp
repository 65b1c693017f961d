// SPDX-License-Identifier: MIT
#include "cli/redaction.h"

#include "text/json_document.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace vgpu::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRemoved = "(removed)";

/// True for letters, digits and '_', which continue a word. '-' and '.' end a word, so the host's
/// name "host" is a whole word in "host-1" and "host.example".
bool is_word_letter(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Replaces `name` by `by` where `name` is a whole word.
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

/// Replaces the name in "/home/NAME" by USER, even if the name is unknown.
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

bool is_blank(char letter) {
    return std::isspace(static_cast<unsigned char>(letter)) != 0;
}

std::string lower(std::string_view text) {
    std::string low(text);
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return low;
}

std::size_t word_end(const std::string& text, std::size_t begin) {
    return static_cast<std::size_t>(
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_blank) -
        text.begin());
}

/// True if `before`, the text before "://", ends with "http" or "https", as "git+https" does. With
/// another scheme, the word before '@' is a user and not a token (qemu+ssh://root@h).
bool is_web_scheme(std::string_view before) {
    constexpr std::size_t kLongest = 5;
    const std::string low = lower(before.substr(before.size() - std::min(kLongest, before.size())));
    return low.ends_with("http") || low.ends_with("https");
}

/// Removes the password in "qemu+tls://admin:hunter2@host". Also removes "abc" in
/// "https://abc@host", because such a word is more often a token than a name. The removed part ends
/// at the last '@' of the word, because passwords often contain '/' or '@'.
std::string without_passwords(std::string text) {
    constexpr std::string_view kSchemeEnd = "://";
    for (std::size_t at = text.find(kSchemeEnd); at != std::string::npos;
         at = text.find(kSchemeEnd, at)) {
        const bool is_web = is_web_scheme(std::string_view(text).substr(0, at));
        at += kSchemeEnd.size();
        const std::string word = text.substr(at, word_end(text, at) - at);
        const std::size_t colon = word.find(':'), at_sign = word.rfind('@');
        if (at_sign == std::string::npos) continue;
        const bool has_password = colon < at_sign;
        const std::size_t begin = has_password ? colon + 1 : 0;
        if (has_password || is_web) text.replace(at + begin, at_sign - begin, kRemoved);
    }
    return text;
}

/// "Bearer abc" becomes "Bearer (removed)"; the same for Basic (RFC 9110, 11.4).
std::string without_credentials(std::string text) {
    constexpr std::array<std::string_view, 2> kSchemes{"bearer", "basic"};
    for (const std::string_view scheme : kSchemes) {
        for (std::size_t at = lower(text).find(scheme); at != std::string::npos;
             at = lower(text).find(scheme, at)) {
            const bool is_word = at == 0 || !is_word_letter(text[at - 1]);
            at += scheme.size();
            std::size_t begin = at;
            while (begin < text.size() && is_blank(text[begin])) ++begin;
            const std::size_t end = word_end(text, begin);
            if (is_word && begin > at && end > begin) text.replace(begin, end - begin, kRemoved);
        }
    }
    return text;
}

/// Removes the rest of the text after the first sign for which one of these holds:
///   - it is '=' or ':', and the text before it contains a secret name ("--token=x", "Api-Key: x");
///   - it is '=', and the text after it contains a secret name ("--header=Authorization: x").
/// Does not stop at a blank, because a secret may contain blanks.
std::string without_assigned_secrets(const std::string& text) {
    for (std::size_t at = text.find_first_of("=:"); at != std::string::npos;
         at = text.find_first_of("=:", at + 1)) {
        const bool is_secret = is_secret_name(text.substr(0, at)) ||
                               (text[at] == '=' && is_secret_name(text.substr(at + 1)));
        if (is_secret && at + 1 < text.size()) return text.substr(0, at + 1) + kRemoved;
    }
    return text;
}

std::string redacted(const std::string& text) {
    return without_assigned_secrets(without_credentials(without_passwords(text)));
}

/// True if the word after `word` may be a secret. `word` is then an option such as "--token", or a
/// short option that many programs use for a password or a user.
bool is_secret_option(const std::string& word) {
    constexpr std::array<std::string_view, 3> kShort{"-p", "-P", "-u"};
    return word.find_first_of("=:") == std::string::npos &&
           (is_secret_name(word) || std::find(kShort.begin(), kShort.end(), word) != kShort.end());
}

/// Removes secrets from a value and everything in it. If a member has a secret name, removes its
/// whole value, even an object or a list.
void redact(Json& json);

/// Removes secrets from a list. Also removes the item after an option such as "--token", because
/// that item may be the option's value.
void redact_list(Json& list) {
    bool is_next_secret = false;
    for (Json& item : list) {
        const bool is_option =
            !is_next_secret && item.is_string() && is_secret_option(item.get<std::string>());
        if (is_next_secret && !item.is_structured())
            item = kRemoved;
        else
            redact(item);
        is_next_secret = is_option;
    }
}

void redact(Json& json) {
    if (json.is_string()) json = redacted(json.get<std::string>());
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
    const std::string low = lower(name);
    return std::any_of(kWords.begin(), kWords.end(), [&low](std::string_view word) {
        return low.find(word) != std::string::npos;
    });
}

std::string without_names(const std::string& text, const Identity& identity) {
    constexpr std::size_t kShortest = 3;  // shorter names occur in too many texts
    std::string clean = without_homes(text);
    if (identity.host.size() >= kShortest && identity.host != "localhost")
        clean = replaced(std::move(clean), identity.host, "HOST");
    for (const std::string& user : identity.users)
        if (user.size() >= kShortest && user != "root")
            clean = replaced(std::move(clean), user, "USER");
    return clean;
}

std::optional<std::string> redacted_configuration(const std::string& text) {
    auto json = text::read_json<Json>(text, text::Comments::Allowed);
    if (!json) return {};
    redact(*json);
    return json->dump(2) + "\n";
}

}  // namespace vgpu::cli
