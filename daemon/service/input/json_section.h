// SPDX-License-Identifier: MIT
//
// JsonSection: one JSON object of a document that a person wrote, being read. It knows its path in
// the document and remembers the first mistake of the whole document, named with that path; what is
// wrong is left at its default, so that reading goes on without a check at every value. Used by
// parse_config() and parse_configuration().
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
    std::uint32_t least;
    std::uint32_t most;
};

/// `value` as messages show it: clipped, and lists and objects are only named.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// Refers to the document and to the error, which both outlive it.
class JsonSection {
public:
    /// `error` has the id that a mistake gets, and no cause while there is none.
    JsonSection(const nlohmann::json& json, std::string path, Error& error);

    /// Every key must be one of `known`.
    /// The nearest known key is named, and all of them.
    void only(std::initializer_list<std::string_view> known);
    void only(const std::vector<std::string_view>& known);
    /// `to` stays if the key is not there or wrong; so with all that follow.
    void number(const std::string& key, Bounds bounds, std::uint32_t& to);
    /// With or without a fraction.
    void real(const std::string& key, double least, double most, double& to);
    /// An empty text is a mistake.
    void text(const std::string& key, std::string& to);
    void flag(const std::string& key, bool& to);
    void texts(const std::string& key, std::vector<std::string>& to);

    /// Null if it is not there.
    [[nodiscard]] const nlohmann::json* find(const std::string& key) const;
    [[nodiscard]] std::string path_of(const std::string& key) const { return path_ + "/" + key; }
    /// Remembers the mistake `what` of `key` ("": of the object), if it is the first.
    void complain(const std::string& key, const std::string& what);
    [[nodiscard]] Error& error() const { return error_; }
    /// Somewhere in the document: what comes now will not be heard of.
    [[nodiscard]] bool has_complained() const { return !error_.cause.empty(); }

private:
    const nlohmann::json& json_;
    std::string path_;
    Error& error_;
};

}  // namespace vgpu::daemon
