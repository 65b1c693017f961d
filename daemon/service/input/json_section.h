// SPDX-License-Identifier: MIT
//
// JsonSection: reads one JSON object of a hand-written document. Records the first mistake in the
// document, with its path. A variable keeps its default if its member has a wrong value, so callers
// check for a mistake only at the end. Used by parse_config() and parse_configuration().
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Both ends included.
struct Bounds {
    std::uint32_t min;
    std::uint32_t max;
};

/// `value` as an error text shows it: "a list", "an object", or else its JSON, clipped if long.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// The document and the error must outlive the section.
class JsonSection {
public:
    /// `path`: the place of `json` in the document, for error texts. `error`: shared by all
    /// sections of a document; the caller sets its id, and the first mistake sets its cause. It is
    /// a mistake if `json` is not an object.
    JsonSection(const nlohmann::json& json, std::string path, Error& error);

    /// Complains about a key that is not in `known`. The error lists the known keys and suggests
    /// a similar one, if any.
    void only(std::initializer_list<std::string_view> known);
    void only(const std::vector<std::string_view>& known);
    /// Reads a whole number. In this and the functions below, `to` keeps its value if the key is
    /// absent or the value is wrong.
    void number(const std::string& key, Bounds bounds, std::uint32_t& to);
    /// Reads a number, with or without a fraction, from `min` to `max`.
    void real(const std::string& key, double min, double max, double& to);
    /// Reads a text. An empty text is a mistake.
    void text(const std::string& key, std::string& to);
    void flag(const std::string& key, bool& to);
    /// Reads a list of texts, which may be empty.
    void texts(const std::string& key, std::vector<std::string>& to);

    /// The value of a member; null if the member is absent.
    [[nodiscard]] const nlohmann::json* find(const std::string& key) const;
    [[nodiscard]] std::string path_of(const std::string& key) const { return path_ + "/" + key; }
    /// Sets the cause of the error to path, key and `what`, unless an earlier mistake has set it.
    /// `key`: the wrong member; "": the object itself is wrong.
    void complain(const std::string& key, const std::string& what);
    [[nodiscard]] Error& error() const { return error_; }
    /// True if a mistake was found anywhere in the document.
    [[nodiscard]] bool has_complained() const { return !error_.cause.empty(); }

private:
    const nlohmann::json& json_;
    std::string path_;
    Error& error_;
};

}  // namespace vgpu::daemon
