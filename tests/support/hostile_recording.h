// SPDX-License-Identifier: MIT
//
// Recordings (daemon/simulator/recording.h) that an attacker could send, made from valid ones, and
// the text that a terminal may show of them. In a valid recording, to_cbor() encodes an item as the
// recorder did, which gives the length of the item.
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

/// Text that sets a terminal's title, erases, and is not UTF-8. It has an escape sequence, DEL, and
/// CSI as one character.
inline constexpr const char* kHostileWords =
    "\x1b]0;owned\x07\x7f\xc2\x9b"
    "2J\xff";
inline constexpr const char* kHostileWordsShown = "?]0;owned???2J?";

/// True if `text` is UTF-8 with only printable characters and line ends, so that no terminal takes
/// it for a command.
inline bool is_harmless(std::string_view text) {
    std::string letters(text);
    std::erase(letters, '\n');
    return vgpu::text::printable(letters) == letters;
}

/// A copy of `recording` with one changed item, the first for which `change` returns true.
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

/// A copy of `recording` with `time` as the `unix_time` of its first item, the head.
inline std::string with_unix_time(const std::string& recording, std::int64_t time) {
    return with_changed_item(recording, [time](nlohmann::json& head) {
        head["unix_time"] = time;
        return true;
    });
}

/// A copy of `recording` with a further annotation, and with kHostileWords at the end of each text.
inline std::string with_hostile_texts(const std::string& recording) {
    constexpr int kAnnotated = 10;
    std::string bytes = recording;
    nlohmann::json::to_cbor(nlohmann::json::array({kAnnotated, 1, 0, "note", "words"}), bytes);
    return simulator::with_texts(bytes,
                                 [](const std::string& text) { return text + kHostileWords; })
        .value();
}

}  // namespace vgpu::test
