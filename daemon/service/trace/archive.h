// SPDX-License-Identifier: MIT
//
// Writer and Reader: a Writer stores the members of a value in a JSON array (CBOR in the file), and
// a Reader reads them back. For each type, one function template `walk` (event.cpp) passes the
// members to a Writer or to a Reader in the same order, so that writing and reading cannot differ.
// A Reader throws BadTrace if an item is missing, has another type or is out of range.
#pragma once

#include "daemon/ports/clock.h"

#include <fmt/format.h>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::daemon::trace {

using Json = nlohmann::json;

/// Thrown for JSON that is not a valid recording. Code that reads files must catch it, because
/// files are untrusted.
class BadTrace : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A number of 128 bits. Stored as two items: signed upper half, lower half.
using Wide = __int128;
/// Limit of a text (name or annotation), in bytes. Recorder cuts longer annotations.
inline constexpr std::size_t kLongestText = 4096;
/// Limit of |Wide|. Small enough that products with a weight fit in a Wide.
inline constexpr Wide kWideLimit = Wide{1} << 100;
/// Limit of |time|, in ns (36 years). Small enough that the sum of two times does not overflow.
inline constexpr std::int64_t kTimeLimit = std::int64_t{1} << 60;

/// Each call writes the next value. Ignores the bounds that `walk` passes; only a Reader checks
/// them.
class Writer {
public:
    /// Appends to the array `out`. Writes each time as the difference to `last`, then sets `last`
    /// to that time.
    Writer(Json& out, Nanoseconds& last) : out_(out), last_(last) {}

    template <typename T> void number(const T& value, std::int64_t, std::int64_t) {
        out_.push_back(value);
    }
    void real(double value, double, double) { out_.push_back(value); }
    void flag(bool value) { out_.push_back(value); }
    void text(const std::string& value) { out_.push_back(value); }
    void time(Nanoseconds value) {
        out_.push_back((value - last_).count());
        last_ = value;
    }
    void wide(Wide value) {
        out_.push_back(static_cast<std::int64_t>(value >> 64));
        out_.push_back(static_cast<std::uint64_t>(value));
    }
    template <typename T, typename Each>
    void list(const std::vector<T>& items, std::size_t, Each each) {
        out_.push_back(items.size());
        for (T item : items) each(*this, item);  // copies, because `walk` takes T&
    }

private:
    Json& out_;
    Nanoseconds& last_;
};

/// Each call reads the next value or throws BadTrace. After an exception, do not use the value.
class Reader {
public:
    /// Reads the array `in` from item `from` on; `in` must outlive the Reader. A time in the array
    /// is the difference to `last`, the time that was read before it.
    Reader(const Json& in, Nanoseconds& last, std::size_t from = 0)
        : in_(in), last_(last), at_(from) {}

    template <typename T> void number(T& value, std::int64_t min, std::int64_t max) {
        const Json& item = next();
        if (!item.is_number_integer()) throw BadTrace("a number is missing");
        const bool is_big = item.is_number_unsigned() && item.get<std::uint64_t>() > INT64_MAX;
        const auto found = item.get<std::int64_t>();
        if (is_big || found < min || found > max)
            throw BadTrace(fmt::format("{} is not in {} to {}", item.dump(), min, max));
        value = static_cast<T>(found);
    }
    void real(double& value, double min, double max) {
        const Json& item = next();
        if (!item.is_number()) throw BadTrace("a number is missing");
        value = item.get<double>();
        if (!(value >= min && value <= max))
            throw BadTrace(fmt::format("{} is not in {} to {}", value, min, max));
    }
    void flag(bool& value) {
        const Json& item = next();
        if (!item.is_boolean()) throw BadTrace("true or false is missing");
        value = item.get<bool>();
    }
    void text(std::string& value) {
        const Json& item = next();
        if (!item.is_string() || item.get_ref<const std::string&>().size() > kLongestText)
            throw BadTrace("a text is missing");
        value = item.get<std::string>();
    }
    void time(Nanoseconds& value) {
        std::int64_t passed = 0;
        number(passed, -kTimeLimit, kTimeLimit);
        const std::int64_t now = last_.count() + passed;
        if (now < -kTimeLimit || now > kTimeLimit) throw BadTrace("a time is out of all bounds");
        value = last_ = Nanoseconds{now};
    }
    void wide(Wide& value) {
        std::int64_t upper = 0;
        number(upper, INT64_MIN, INT64_MAX);
        const Json& lower = next();
        if (!lower.is_number_unsigned()) throw BadTrace("half a number is missing");
        value = Wide{upper} * (Wide{1} << 64) + Wide{lower.get<std::uint64_t>()};
        if (value < -kWideLimit || value > kWideLimit) throw BadTrace("a number is too large");
    }
    template <typename T, typename Each>
    void list(std::vector<T>& items, std::size_t max, Each each) {
        std::size_t count = 0;
        number(count, 0, static_cast<std::int64_t>(max));
        items.assign(count, T{});
        for (T& item : items) each(*this, item);
    }
    /// Throws BadTrace if items remain: another version of the format has written them.
    void end() const {
        if (at_ != in_.size()) throw BadTrace("there are too many values");
    }

private:
    const Json& next() {
        if (!in_.is_array() || at_ >= in_.size()) throw BadTrace("a value is missing");
        return in_[at_++];
    }

    const Json& in_;
    Nanoseconds& last_;
    std::size_t at_;
};

/// Writes a map as a list of its entries. `each` walks the key and the value of one entry.
template <typename K, typename V, typename Each>
void walk_map(Writer& archive, const std::map<K, V>& map, std::size_t max, Each each) {
    const std::vector<std::pair<K, V>> entries(map.begin(), map.end());
    archive.list(entries, max, [&](auto& a, auto& entry) { each(a, entry.first, entry.second); });
}

/// Reads the list that the walk_map() above writes into a map. Throws BadTrace if the list has more
/// than `max` entries.
template <typename K, typename V, typename Each>
void walk_map(Reader& archive, std::map<K, V>& map, std::size_t max, Each each) {
    std::vector<std::pair<K, V>> entries;
    archive.list(entries, max, [&](auto& a, auto& entry) { each(a, entry.first, entry.second); });
    map = {entries.begin(), entries.end()};
}

}  // namespace vgpu::daemon::trace
