// SPDX-License-Identifier: MIT
//
// Recorder: a GpuSchedule that records its latest inputs and queries in bounded memory, like a
// flight recorder. The record is a CBOR sequence (RFC 8742) in chunks. Each chunk begins with the
// schedule's image, so a replay can start with any chunk:
//   {"vgpu_trace": 4, "chunk": N, "continues": B, "at": NS, "vgpud": V, "gpu": ID,
//    "names": {VF: NAME}, "unix_time": S, "schedule": [...]}   times below count from "at"
//   [kind, members…] …                                         see event.cpp
//
// A client that keeps reading gets every chunk, or Piece::is_late if chunks were dropped. Owned by
// GpuModel.
#pragma once

#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/trace/event.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::trace {

/// `bytes`: the rest of a chunk, and whole chunks, to append to the earlier pieces.
struct Piece {
    std::uint64_t next = 0;  ///< offset to continue from
    bool is_late = false;    ///< true if earlier records were dropped
    std::vector<std::uint8_t> bytes{};
};

/// A ring of chunks. A new chunk replaces the oldest one. An offset counts bytes from the start
/// of the first chunk.
class ChunkRing {
public:
    /// A chunk ends with the event that brings it to this size or beyond. So a GPU needs a little
    /// more than 256 KiB.
    static constexpr std::size_t kChunkBytes = 32u << 10;
    static constexpr std::size_t kChunks = 8;

    [[nodiscard]] bool needs_chunk() const {
        return chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes;
    }
    void begin(const Json& head);
    void append(const Json& item);
    /// Reads from the offset `after` (Piece::next of an earlier read), or from the oldest chunk.
    /// OutOfRange if `after` is beyond the end.
    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const;

private:
    struct Chunk {
        std::uint64_t offset = 0;
        std::vector<std::uint8_t> bytes{};
    };
    std::deque<Chunk> chunks_;
};

/// All changes of the schedule go through the Recorder, so that the record is complete.
class Recorder {
public:
    struct Source {
        std::string gpu;
        std::function<std::map<std::uint32_t, std::string>()> names;
        std::function<std::int64_t()> unix_time;  ///< s
    };

    explicit Recorder(Source source) : source_(std::move(source)) {}

    /// Read-only: changes go through the Recorder.
    const GpuSchedule* operator->() const { return &schedule_; }

    /// Records the event and applies it, unless it is of a VF that is not a member: a GpuSchedule
    /// ignores such VFs. MembersSet, Woke, TableMade and Annotated have separate functions below.
    void apply(const Event& event);

    // as in GpuSchedule
    void set_members(const std::vector<GpuSchedule::Member>& members, std::uint32_t max_gap_ms,
                     Nanoseconds now);
    void on_wake(std::uint32_t vf, Nanoseconds at);
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    /// Records an event for display.
    void annotate(std::uint32_t vf, std::string_view kind, std::string_view text, Nanoseconds now);

    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const {
        return ring_.read(after);
    }

private:
    void write(const Event& event);
    void begin_chunk(bool continues);

    Source source_;
    GpuSchedule schedule_;
    ChunkRing ring_;
    std::uint64_t chunks_ = 0;
    Nanoseconds last_{0};  ///< time of the last event
    /// The image does not contain a table that is not yet confirmed, so no chunk may begin
    /// meanwhile.
    bool is_table_open_ = false;  ///< true between make_table() and the PF core's answer
};

}  // namespace vgpu::daemon::trace
