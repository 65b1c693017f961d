// SPDX-License-Identifier: MIT
//
// Recorder: owns a GpuSchedule and records the latest inputs and queries of this schedule in
// bounded memory, like a flight recorder. The recording is a CBOR sequence (RFC 8742) in chunks.
// Each chunk begins with the schedule's image, so a replay can start with any chunk:
//   {"vgpu_trace": 4, "chunk": N, "continues": B, "at": NS, "vgpud": V, "gpu": ID,
//    "names": {VF: NAME}, "unix_time": S, "schedule": [...]}   times below count from "at"
//   [kind, members…] …                                         see event.cpp
// "continues" is true if the events of the chunk before led to this chunk's image.
//
// A client that keeps reading gets every chunk. If it reads too rarely, Piece::is_late reports that
// chunks were dropped. Owned by GpuModel.
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

/// The result of one read of the recording.
struct Piece {
    std::uint64_t next = 0;             ///< offset for the next read
    bool is_late = false;               ///< true if unread records before `bytes` were dropped
    std::vector<std::uint8_t> bytes{};  ///< recorded bytes, to append to earlier pieces
};

/// The latest chunks. If there are kChunks of them, a new chunk replaces the oldest one. An offset
/// counts bytes from the start of the first chunk, which may have been replaced.
class ChunkRing {
public:
    /// After the event that brings a chunk to this size or beyond, Recorder begins a new chunk as
    /// soon as it may. So the chunks of a GPU need a little more than 256 KiB.
    static constexpr std::size_t kChunkBytes = 32u << 10;
    static constexpr std::size_t kChunks = 8;

    [[nodiscard]] bool needs_chunk() const {
        return chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes;
    }
    void begin(const Json& head);
    void append(const Json& item);
    /// Reads from the offset `after` (Piece::next of an earlier read), or without `after` from the
    /// oldest chunk. OutOfRange if `after` is beyond the end.
    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const;

private:
    struct Chunk {
        std::uint64_t offset = 0;
        std::vector<std::uint8_t> bytes{};
    };
    std::deque<Chunk> chunks_;
};

/// All changes of the schedule go through the Recorder, so that the recording is complete.
class Recorder {
public:
    struct Source {
        std::string gpu;
        std::function<std::map<std::uint32_t, std::string>()> names;
        std::function<std::int64_t()> unix_time;  ///< s
    };

    explicit Recorder(Source source) : source_(std::move(source)) {}

    /// The schedule, read-only.
    const GpuSchedule* operator->() const { return &schedule_; }

    /// Records the event and applies it to the schedule. Ignores events of VFs that are not
    /// members. For MembersSet, Woke, TableMade and Annotated, call the functions below instead.
    void apply(const Event& event);

    // --- as in GpuSchedule; recorded
    void set_members(const std::vector<GpuSchedule::Member>& members, std::uint32_t max_gap_ms,
                     Nanoseconds now);
    void on_wake(std::uint32_t vf, Nanoseconds at);
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    /// Records an annotation (Annotated).
    void annotate(std::uint32_t vf, std::string_view kind, std::string_view text, Nanoseconds now);

    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const {
        return ring_.read(after);
    }

private:
    void begin_due_chunk();
    void write(const Event& event);
    /// `continues`: as in the head of a chunk.
    void begin_chunk(bool continues);

    Source source_;
    GpuSchedule schedule_;
    ChunkRing ring_;
    std::uint64_t chunks_ = 0;
    Nanoseconds last_{0};  ///< time of the last event
    /// True between make_table() and the PF core's answer. No chunk may begin then, because
    /// the image does not contain a table that is not yet confirmed.
    bool is_table_open_ = false;
};

}  // namespace vgpu::daemon::trace
