// SPDX-License-Identifier: MIT
//
// JsonSection: reads one JSON object of a hand-written document. Remembers the first mistake of the
// whole document with its path. A member with a wrong value keeps its default, so callers need not
// check each value. Used by parse_config() and parse_configuration().
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

struct Bounds {
    std::uint32_t min;
    std::uint32_t max;
};

/// The text of `value` for messages. Long values are clipped; of a list or an object, only the type
/// is named.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// The document and the error must outlive the section.
class JsonSection {
public:
    /// `error`: has the id for mistakes; its cause is empty until the document's first mistake.
    JsonSection(const nlohmann::json& json, std::string path, Error& error);

    /// Complains about keys not in `known`, with the nearest known key and all known keys.
    void only(std::initializer_list<std::string_view> known);
    void only(const std::vector<std::string_view>& known);
    /// Reads a whole number. As in all functions below, `to` stays if the key is absent or the
    /// value is wrong.
    void number(const std::string& key, Bounds bounds, std::uint32_t& to);
    /// Accepts numbers with and without a fraction.
    void real(const std::string& key, double min, double max, double& to);
    /// An empty text is a mistake.
    void text(const std::string& key, std::string& to);
    void flag(const std::string& key, bool& to);
    void texts(const std::string& key, std::vector<std::string>& to);

    /// Null if absent.
    [[nodiscard]] const nlohmann::json* find(const std::string& key) const;
    [[nodiscard]] std::string path_of(const std::string& key) const { return path_ + "/" + key; }
    /// Remembers the mistake `what` of `key` ("": of the object), if it is the document's first.
    void complain(const std::string& key, const std::string& what);
    [[nodiscard]] Error& error() const { return error_; }
    /// True if the document has a mistake. Later mistakes are ignored.
    [[nodiscard]] bool has_complained() const { return !error_.cause.empty(); }

private:
    const nlohmann::json& json_;
    std::string path_;
    Error& error_;
};

}  // namespace vgpu::daemon
