// SPDX-License-Identifier: MIT
#include "daemon/service/trace/recorder.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <variant>

namespace vgpu::daemon::trace {

void ChunkRing::begin(const Json& head) {
    const std::uint64_t offset =
        chunks_.empty() ? 0 : chunks_.back().offset + chunks_.back().bytes.size();
    if (chunks_.size() == kChunks) chunks_.pop_front();
    chunks_.push_back({.offset = offset});
    append(head);
}

void ChunkRing::append(const Json& item) {
    Json::to_cbor(item, chunks_.back().bytes);
}

Result<Piece> ChunkRing::read(std::optional<std::uint64_t> after) const {
    if (chunks_.empty()) {
        if (after.value_or(0) == 0) return Piece{};
        return fail(ErrorId::OutOfRange,
                    fmt::format("nothing is recorded yet, so there is no offset {}", *after));
    }
    Piece piece{.next = chunks_.back().offset + chunks_.back().bytes.size()};
    const std::uint64_t oldest = chunks_.front().offset;
    const std::uint64_t from = after.value_or(oldest);
    if (from > piece.next)
        return fail(ErrorId::OutOfRange,
                    fmt::format("the recording ends at {}, before {}; vgpud was restarted",
                                piece.next, from));
    piece.is_late = from < oldest;
    for (const Chunk& chunk : chunks_) {
        const std::uint64_t skip = from > chunk.offset ? from - chunk.offset : 0;
        if (skip >= chunk.bytes.size()) continue;
        piece.bytes.insert(piece.bytes.end(),
                           chunk.bytes.begin() + static_cast<std::ptrdiff_t>(skip),
                           chunk.bytes.end());
    }
    return piece;
}

void Recorder::begin_chunk(bool continues) {
    Json names = Json::object();
    for (const auto& [vf, name] : source_.names()) names[std::to_string(vf)] = name;
    const Nanoseconds at = last_;
    Json schedule = json_of(schedule_.image(), last_);
    last_ = at;  // json_of() has changed last_, but the first event also counts from "at"
    ring_.begin({{"vgpu_trace", kTraceVersion},
                 {"chunk", chunks_++},
                 {"continues", continues},
                 {"at", at.count()},
                 {"vgpud", VGPU_VERSION},
                 {"gpu", source_.gpu},
                 {"names", std::move(names)},
                 {"unix_time", source_.unix_time()},
                 {"schedule", std::move(schedule)}});
}

/// Call it before an event changes the schedule, because the image in a chunk's head must not
/// include the events of the chunk.
void Recorder::begin_due_chunk() {
    if (ring_.needs_chunk() && !is_table_open_) begin_chunk(chunks_ > 0);
}

void Recorder::write(const Event& event) {
    begin_due_chunk();
    ring_.append(json_of(event, last_));
}

void Recorder::apply(const Event& event) {
    const bool is_known = std::visit(
        [this](const auto& one) {
            if constexpr (requires { one.vf; }) return schedule_.fluid().has(one.vf);
            return true;
        },
        event);
    if (!is_known) return;
    write(event);
    trace::apply(event, schedule_);
    if (std::holds_alternative<TableInstalled>(event) ||
        std::holds_alternative<TableRefused>(event))
        is_table_open_ = false;
}

void Recorder::set_members(const std::vector<GpuSchedule::Member>& members,
                           std::uint32_t max_gap_ms, Nanoseconds now) {
    if (schedule_.has_members(members, max_gap_ms)) return;
    apply(MembersSet{
        .at = now, .members = members, .max_gap_ms = max_gap_ms, .names = source_.names()});
}

void Recorder::on_wake(std::uint32_t vf, Nanoseconds at) {
    if (!schedule_.fluid().is_awake(vf)) apply(Woke{.at = at, .vf = vf});
}

Result<vgpu_pf_run_table> Recorder::make_table(std::uint64_t generation, Nanoseconds now) {
    begin_due_chunk();
    auto table = schedule_.make_table(generation, now);
    // The event includes the result of make_table(), so it is written after the call.
    write(TableMade{.at = now,
                    .generation = generation,
                    .is_made = table.has_value(),
                    .digest = table ? digest_of(*table) : 0});
    is_table_open_ = true;
    return table;
}

/// There is no event for an adopted table. Instead a new chunk begins, whose image includes the
/// table.
void Recorder::adopt(const vgpu_pf_run_table& table, Nanoseconds now) {
    schedule_.adopt(table, now);
    last_ = now;
    begin_chunk(false);
}

void Recorder::annotate(std::uint32_t vf, std::string_view kind, std::string_view text,
                        Nanoseconds now) {
    write(Annotated{.at = now,
                    .vf = vf,
                    .kind = std::string(kind.substr(0, kLongestText)),
                    .text = std::string(start_of(text, kLongestText))});
}

}  // namespace vgpu::daemon::trace
