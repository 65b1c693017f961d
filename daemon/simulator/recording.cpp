// SPDX-License-Identifier: MIT
#include "daemon/simulator/recording.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <type_traits>

namespace vgpu::simulator {

using daemon::GpuSchedule;
using daemon::Nanoseconds;
using daemon::trace::BadTrace;
using daemon::trace::Event;
using daemon::trace::Json;

namespace {

/// Limit of nesting in an item, because the CBOR reader recurses once per level.
constexpr int kDeepest = 8;
constexpr const char* kEventFirst = "an event comes before the first chunk";
constexpr const char* kNoChunk = "there is no chunk";
/// Limit of the service of all VFs in ns, about three days, so that lags fit in 64 bits.
constexpr std::int64_t kMaxService = std::int64_t{1} << 48;
/// The end of the year 9999, the last year with four digits.
constexpr std::int64_t kLastUnixTime = 253'402'300'799;

/// Skips one CBOR item. Refuses items with binary values or with more than kDeepest levels.
class Skimmer final : public nlohmann::json_sax<Json> {
public:
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override { return ++depth_ <= kDeepest; }
    bool key(string_t&) override { return true; }
    bool end_object() override { return --depth_ >= 0; }
    bool start_array(std::size_t) override { return ++depth_ <= kDeepest; }
    bool end_array() override { return --depth_ >= 0; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

private:
    int depth_ = 0;
};

/// Reads the items of a CBOR sequence, one after the other.
class Items {
public:
    explicit Items(std::string_view bytes) : bytes_(bytes), stream_(std::string(bytes)) {}

    /// The offset of the first byte after the last item that next() has read.
    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] bool is_over() const { return at_ == bytes_.size(); }
    /// The next item; none if reading fails at the end of the bytes. Throws BadTrace if reading
    /// fails earlier.
    std::optional<Json> next() {
        Skimmer skimmer;
        // false: more items may follow
        const bool is_whole = Json::sax_parse(stream_, &skimmer, Json::input_format_t::cbor, false);
        if (!is_whole && stream_.peek() == std::istringstream::traits_type::eof()) return {};
        if (!is_whole) throw BadTrace("this is not the CBOR of a trace");
        const auto end = static_cast<std::size_t>(stream_.tellg());
        const std::string_view item = bytes_.substr(at_, end - at_);
        at_ = end;
        return Json::from_cbor(item.begin(), item.end());
    }

private:
    std::string_view bytes_;
    std::istringstream stream_;
    std::size_t at_ = 0;
};

const Json& member(const Json& head, const char* name) {
    if (!head.contains(name)) throw BadTrace(fmt::format("the head of a chunk has no {}", name));
    return head.at(name);
}

std::int64_t number_in(const Json& head, const char* name) {
    const Json& value = member(head, name);
    const bool is_number = value.is_number_integer() &&
                           !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
    if (!is_number) throw BadTrace(fmt::format("{} is not a number", name));
    return value.get<std::int64_t>();
}

std::int64_t unix_time_in(const Json& head) {
    const std::int64_t time = number_in(head, "unix_time");
    if (time < 0 || time > kLastUnixTime)
        throw BadTrace(fmt::format("unix_time {} is not in 0 to {}", time, kLastUnixTime));
    return time;
}

/// Reads a text and makes it printable.
std::string text_in(const Json& head, const char* name) {
    const Json& value = member(head, name);
    if (!value.is_string()) throw BadTrace(fmt::format("{} is not text", name));
    return daemon::printable(value.get<std::string>());
}

void read_names(const Json& names, std::map<std::uint32_t, std::string>& known) {
    if (!names.is_object()) throw BadTrace("names are not a map");
    for (std::uint32_t vf = 1; vf <= VGPU_PF_MAX_VFS; ++vf) {
        const auto found = names.find(std::to_string(vf));
        if (found == names.end() || !found->is_string()) continue;
        known[vf] = daemon::printable(found->get<std::string>());
    }
}

RecordedChunk chunk_of(const Json& head, Recording& recording) {
    const std::int64_t version = number_in(head, "vgpu_trace");
    if (version != daemon::trace::kTraceVersion)
        throw BadTrace(fmt::format("the trace has version {}; this vgpuctl reads version {}",
                                   version, daemon::trace::kTraceVersion));
    RecordedChunk chunk;
    chunk.number = static_cast<std::uint64_t>(number_in(head, "chunk"));
    chunk.continues = member(head, "continues") == Json(true);
    const std::int64_t at = number_in(head, "at");
    if (at < -daemon::trace::kTimeLimit || at > daemon::trace::kTimeLimit)
        throw BadTrace("a time is out of all bounds");
    chunk.at = Nanoseconds{at};
    chunk.unix_time = unix_time_in(head);
    recording.vgpud = text_in(head, "vgpud");
    const std::string gpu = text_in(head, "gpu");
    if (!recording.chunks.empty() && gpu != recording.gpu)
        throw BadTrace(fmt::format("a chunk of {} after one of {}", gpu, recording.gpu));
    recording.gpu = gpu;
    read_names(member(head, "names"), recording.names);
    Nanoseconds last = chunk.at;
    chunk.image = daemon::trace::image_of(member(head, "schedule"), last);
    return chunk;
}

/// Reads an event. Adds the VF names in the event to `recording`.
Event event_in(const Json& item, Nanoseconds& last, Recording& recording) {
    Event event = daemon::trace::event_of(item, last);
    if (const auto* set = std::get_if<daemon::trace::MembersSet>(&event))
        for (const auto& [vf, name] : set->names) recording.names[vf] = daemon::printable(name);
    if (auto* annotated = std::get_if<daemon::trace::Annotated>(&event)) {
        annotated->kind = daemon::printable(annotated->kind);
        annotated->text = daemon::printable(annotated->text);
    }
    return event;
}

/// The service in ns that the event reports; 0 if none.
std::int64_t service_in(const Event& event) {
    if (const auto* ran = std::get_if<daemon::trace::Ran>(&event)) return ran->ns;
    if (const auto* missed = std::get_if<daemon::trace::Missed>(&event)) return missed->ns;
    return 0;
}

Recording recording_of(Items& items) {
    Recording recording;
    Nanoseconds last{0};
    std::int64_t service = 0;
    while (!items.is_over()) {
        const std::optional<Json> item = items.next();
        if (!item) {
            recording.is_cut = true;
            break;
        }
        if (item->is_object()) {
            recording.chunks.push_back(chunk_of(*item, recording));
            last = recording.chunks.back().at;
            continue;
        }
        if (recording.chunks.empty()) throw BadTrace(kEventFirst);
        recording.chunks.back().events.push_back(event_in(*item, last, recording));
        service += std::min(kMaxService, service_in(recording.chunks.back().events.back()));
        if (service > kMaxService) throw BadTrace("VFs ran for more than three days");
    }
    if (recording.chunks.empty()) throw BadTrace(kNoChunk);
    return recording;
}

using Replaced = std::function<std::string(const std::string&)>;

/// Replaces all texts in `json` except the names of members.
void replace_texts(Json& json, const Replaced& replaced) {
    if (json.is_string()) json = replaced(json.get<std::string>());
    if (!json.is_structured()) return;
    for (Json& one : json) replace_texts(one, replaced);
}

std::string replaced_items(Items& items, const Replaced& replaced) {
    std::string bytes;
    while (!items.is_over()) {
        std::optional<Json> item = items.next();
        if (!item) break;
        if (bytes.empty() && !item->is_object()) throw BadTrace(kEventFirst);
        replace_texts(*item, replaced);
        Json::to_cbor(*item, bytes);
    }
    if (bytes.empty()) throw BadTrace(kNoChunk);
    return bytes;
}

/// Calls `read` with the items of `bytes`, and returns the result of `read`. If `read` throws,
/// returns the error text with Items::at().
template <typename T, typename Read>
tl::expected<T, std::string> result_of(std::string_view bytes, Read read) {
    Items items(bytes);
    try {
        return read(items);
    } catch (const BadTrace& error) {
        return tl::make_unexpected(fmt::format("byte {}: {}", items.at(), error.what()));
    } catch (const Json::exception& error) {
        return tl::make_unexpected(fmt::format("byte {}: {}", items.at(), error.what()));
    }
}

}  // namespace

tl::expected<Recording, std::string> read_recording(std::string_view bytes) {
    return result_of<Recording>(bytes, recording_of);
}

tl::expected<std::string, std::string> with_texts(std::string_view bytes,
                                                  const Replaced& replaced) {
    return result_of<std::string>(
        bytes, [&replaced](Items& items) { return replaced_items(items, replaced); });
}

std::string name_in(const Recording& recording, std::uint32_t vf) {
    const auto found = recording.names.find(vf);
    return found == recording.names.end() ? fmt::format("vf{}", vf) : found->second;
}

std::optional<Nanoseconds> time_of(const Event& event) {
    return std::visit(
        [](const auto& one) -> std::optional<Nanoseconds> {
            if constexpr (requires { one.at; })
                return one.at;
            else if constexpr (requires { one.end; })
                return one.end;
            else
                return {};
        },
        event);
}

Replay replay(const Recording& recording, const ReplayObserver& observer) {
    Replay outcome;
    GpuSchedule schedule;
    const auto differs = [&](std::string how) {
        if (outcome.different++ == 0) outcome.first_difference = std::move(how);
    };
    for (std::size_t i = 0; i < recording.chunks.size(); ++i) {
        const RecordedChunk& chunk = recording.chunks[i];
        const bool is_next = i > 0 && recording.chunks[i - 1].number + 1 == chunk.number;
        if (i > 0 && !is_next) ++outcome.gaps;
        if (is_next && chunk.continues && schedule.image() != chunk.image)
            differs(fmt::format("the schedule at the beginning of chunk {}", chunk.number));
        schedule = GpuSchedule(chunk.image);
        for (const Event& event : chunk.events) {
            ++outcome.events;
            const auto* table = std::get_if<daemon::trace::TableMade>(&event);
            if (table != nullptr) ++outcome.tables;
            if (!daemon::trace::apply(event, schedule) && table != nullptr)
                differs(fmt::format("table {}", table->generation));
            if (observer) observer(event, schedule);
        }
    }
    return outcome;
}

}  // namespace vgpu::simulator
