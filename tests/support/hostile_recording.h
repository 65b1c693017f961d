// SPDX-License-Identifier: MIT
//
// Recordings (daemon/simulator/recording.h) as somebody could send them who means harm, made of
// good ones, and what a terminal may be shown of them. Items of a good one are encoded as its
// writer encodes them, so their lengths are known.
#pragma once

#include "daemon/simulator/recording.h"
#include "text/utf8.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace vgpu::test {

/// Sets a terminal's title, erases, and is no UTF-8: an escape sequence, DEL, CSI as one character.
inline constexpr const char* kHostileWords =
    "\x1b]0;owned\x07\x7f\xc2\x9b"
    "2J\xff";
inline constexpr const char* kHostileWordsShown = "?]0;owned???2J?";

/// Printable letters and ends of lines: no terminal takes it for a command, and it is UTF-8.
inline bool is_harmless(std::string_view text) {
    std::string letters(text);
    std::erase(letters, '\n');
    return vgpu::text::printable(letters) == letters;
}

/// `recording` with the first item that `change` returns true for as `change` leaves it.
inline std::string with_changed_item(const std::string& recording,
                                     const std::function<bool(nlohmann::json&)>& change) {
    using Json = nlohmann::json;
    constexpr bool kMustBeAll = false;
    for (auto at = recording.begin(); at != recording.end();) {
        Json item = Json::from_cbor(at, recording.end(), kMustBeAll);
        const auto end = at + static_cast<std::ptrdiff_t>(Json::to_cbor(item).size());
        if (change(item)) {
            std::string changed(recording.begin(), at);
            Json::to_cbor(item, changed);
            return changed.append(end, recording.end());
        }
        at = end;
    }
    return recording;
}

/// With another `unix_time` in its first head.
inline std::string with_unix_time(const std::string& recording, std::int64_t time) {
    return with_changed_item(recording, [time](nlohmann::json& head) {
        head["unix_time"] = time;
        return true;
    });
}

/// With kHostileWords at the end of each text, also of an annotation, which comes last.
inline std::string with_hostile_texts(const std::string& recording) {
    constexpr int kAnnotated = 10;
    std::string bytes = recording;
    nlohmann::json::to_cbor(nlohmann::json::array({kAnnotated, 1, 0, "note", "words"}), bytes);
    return simulator::with_texts(bytes,
                                 [](const std::string& text) { return text + kHostileWords; })
        .value();
}

}  // namespace vgpu::test
