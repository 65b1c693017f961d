// SPDX-License-Identifier: MIT
#include "daemon/service/state/journal.h"

#include "daemon/service/state/crc32c.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "\xffvgJ";
constexpr std::size_t kLengthAt = 4, kSequenceAt = 8, kCrcAt = 16;
constexpr std::string_view kJournalSchema = "vgpud-journal";
constexpr std::uint32_t kFirstJournalVersion = 1;

template <typename Number> std::string little_endian(Number number) {
    std::string bytes;
    for (std::size_t i = 0; i < sizeof number; ++i)
        bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * i) & 0xff));
    return bytes;
}

template <typename Number> Number number_at(std::string_view bytes, std::size_t at) {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof number; ++i)
        number |= static_cast<Number>(Number{static_cast<unsigned char>(bytes[at + i])} << (8 * i));
    return number;
}

/// Length and sequence are covered, too: a flipped length would make the next record part of this
/// one.
std::uint32_t crc_of(std::string_view head, std::string_view payload) {
    return crc32c(payload, crc32c(head.substr(kLengthAt, kCrcAt - kLengthAt)));
}

/// The whole, sound record that begins at `at`, if one does.
std::optional<JournalRecord> record_at(std::string_view bytes, std::size_t at) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < kRecordHead || !rest.starts_with(kMagic)) return {};
    const auto length = number_at<std::uint32_t>(rest, kLengthAt);
    if (length > kMaxPayload || rest.size() - kRecordHead < length) return {};
    const std::string_view payload = rest.substr(kRecordHead, length);
    if (number_at<std::uint32_t>(rest, kCrcAt) != crc_of(rest, payload)) return {};
    return JournalRecord{
        .sequence = number_at<std::uint64_t>(rest, kSequenceAt), .offset = at, .payload = payload};
}

/// Where a sound record begins after `at`; nothing if none does.
/// Bytes that cannot be in JSON text begin a record, so a hit that is also sound by its CRC is one.
std::optional<std::size_t> next_sound(std::string_view bytes, std::size_t at) {
    for (at = bytes.find(kMagic, at + 1); at != std::string_view::npos;
         at = bytes.find(kMagic, at + 1))
        if (record_at(bytes, at)) return at;
    return {};
}

tl::unexpected<Error> damaged(std::string_view path, std::uint64_t offset, std::string_view how) {
    return fail(ErrorId::StateCorrupt,
                fmt::format("the journal {} is damaged at offset {}: {}", path, offset, how));
}

struct Head {
    JournalRecord record;
    std::uint32_t version = 0;
};

Result<Head> read_head(std::string_view bytes, std::string_view path) {
    const auto head = record_at(bytes, 0);
    if (!head) return damaged(path, 0, "it does not begin with a whole head");
    const Json json = Json::parse(head->payload, nullptr, false);
    const bool is_complete = json.is_object() && json.contains("schema") &&
                             json.at("schema").is_string() && json.contains("version") &&
                             json.at("version").is_number_unsigned();
    if (!is_complete || json.at("schema").get<std::string>() != kJournalSchema)
        return damaged(path, 0, "its head is none of vgpud's");
    const auto version = json.at("version").get<std::uint64_t>();
    if (version < kFirstJournalVersion || version > kJournalVersion)
        return fail(ErrorId::StateNewer,
                    fmt::format("the journal {} has version {}; this vgpud knows versions {} to {}",
                                path, version, kFirstJournalVersion, kJournalVersion));
    return Head{.record = *head, .version = static_cast<std::uint32_t>(version)};
}

/// What is not sound at the end is one torn record, or the journal is damaged.
/// A record is written only after the one before it was synced. So a crash can tear the last one
/// only; damage that is followed by a sound record is the disk's or somebody's, and dropping it
/// would lose durable changes silently.
Result<> check_tail(std::string_view bytes, std::uint64_t end, std::string_view path) {
    if (const auto next = next_sound(bytes, end))
        return damaged(path, end,
                       fmt::format("no sound record there, but one follows at offset {}", *next));
    if (bytes.size() - end > kRecordHead + kMaxPayload)
        return damaged(path, end,
                       fmt::format("the {} bytes from there on are no record, and too many to be "
                                   "one that was torn",
                                   bytes.size() - end));
    return {};
}

}  // namespace

std::string encode_record(std::uint64_t sequence, std::string_view payload) {
    std::string head(kMagic);
    head += little_endian(static_cast<std::uint32_t>(payload.size()));
    head += little_endian(sequence);
    const std::uint32_t crc = crc_of(head, payload);
    return head + little_endian(crc) + std::string(payload);
}

std::string encode_journal_head(std::uint64_t base, std::uint32_t version) {
    return encode_record(base, Json{{"schema", kJournalSchema}, {"version", version}}.dump());
}

std::optional<JournalText> read_sound_part(std::string_view bytes) {
    const auto head = read_head(bytes, "");
    if (!head) return {};
    JournalText text{.version = head->version,
                     .base = head->record.sequence,
                     .end = kRecordHead + head->record.payload.size()};
    for (auto record = record_at(bytes, text.end);
         record && record->sequence == text.last_sequence() + 1;
         record = record_at(bytes, text.end)) {
        text.records.push_back(*record);
        text.end += kRecordHead + record->payload.size();
    }
    return text;
}

Result<JournalText> read_journal(std::string_view bytes, std::string_view path) {
    TRY(const Head head, read_head(bytes, path));
    JournalText text{.version = head.version,
                     .base = head.record.sequence,
                     .records = {},
                     .end = kRecordHead + head.record.payload.size(),
                     .torn_bytes = 0};
    while (text.end < bytes.size()) {
        const auto record = record_at(bytes, text.end);
        if (!record) {
            TRY_VOID(check_tail(bytes, text.end, path));
            text.torn_bytes = bytes.size() - text.end;
            break;
        }
        if (record->sequence != text.last_sequence() + 1)
            return damaged(path, text.end,
                           fmt::format("generation {} follows generation {}", record->sequence,
                                       text.last_sequence()));
        text.records.push_back(*record);
        text.end += kRecordHead + record->payload.size();
    }
    return text;
}

}  // namespace vgpu::daemon
