// SPDX-License-Identifier: MIT
//
// Recorder: owns a GpuSchedule and records the latest calls to it in bounded memory, like a flight
// recorder. The recording is a CBOR sequence (RFC 8742) in chunks. Each chunk begins with a head
// that has the schedule's image, so a replay can start with any chunk:
//   {"vgpu_trace": 4, "chunk": N, "continues": B, "at": NS, "vgpud": V, "gpu": ID,
//    "names": {VF: NAME}, "unix_time": S, "schedule": [...]}   times below count from "at"
//   [kind, members…] …                                         see event.cpp
// "continues" is true if the events of the previous chunk led to this chunk's image.
//
// A client that reads often enough gets every chunk. Piece::is_late reports that chunks were
// dropped before the client read them. Owned by GpuModel.
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

/// The result of one read of the recording from the offset `after` (ChunkRing::read()).
struct Piece {
    std::uint64_t next = 0;             ///< offset for the next read
    bool is_late = false;               ///< true if bytes between `after` and `bytes` were dropped
    std::vector<std::uint8_t> bytes{};  ///< recorded bytes, to append to earlier pieces
};

/// The latest kChunks chunks; a new chunk replaces the oldest one. An offset counts bytes from the
/// start of the very first chunk, which may have been replaced.
class ChunkRing {
public:
    /// When a chunk reaches this size, Recorder begins a new chunk before the next event or, while
    /// a table waits for the PF core's answer, before the first event after the answer. So all
    /// chunks of a GPU together need at most a little more than kChunks · kChunkBytes = 256 KiB.
    static constexpr std::size_t kChunkBytes = 32u << 10;
    static constexpr std::size_t kChunks = 8;

    [[nodiscard]] bool needs_chunk() const {
        return chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes;
    }
    /// Begins a chunk with `head`.
    void begin(const Json& head);
    /// Appends an event to the newest chunk, which must exist.
    void append(const Json& item);
    /// Reads from the offset `after` (Piece::next of an earlier read) to the end; without `after`,
    /// from the oldest chunk. Fails with OutOfRange if `after` is beyond the end.
    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const;

private:
    struct Chunk {
        std::uint64_t offset = 0;  ///< of the first byte of the chunk
        std::vector<std::uint8_t> bytes{};
    };
    std::deque<Chunk> chunks_;
};

/// All changes of the schedule go through the Recorder, so that the recording is complete.
class Recorder {
public:
    /// Facts about the GPU, for the heads of chunks.
    struct Source {
        std::string gpu;                                              ///< id of the GPU
        std::function<std::map<std::uint32_t, std::string>()> names;  ///< names of the VFs, by VF
        std::function<std::int64_t()> unix_time;                      ///< seconds since 1970
    };

    explicit Recorder(Source source) : source_(std::move(source)) {}

    /// The schedule, read-only.
    const GpuSchedule* operator->() const { return &schedule_; }

    /// Records the event, then makes its call on the schedule. Ignores events of VFs that are not
    /// members. For MembersSet, Woke, TableMade and Annotated, call the functions below instead.
    void apply(const Event& event);

    // --- as in GpuSchedule, but recorded. set_members() without a change, and on_wake() for an
    // awake VF, do nothing.
    void set_members(const std::vector<GpuSchedule::Member>& members, std::uint32_t max_gap_ms,
                     Nanoseconds now);
    void on_wake(std::uint32_t vf, Nanoseconds at);
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    /// As in GpuSchedule. Not recorded, because no decision depends on the account.
    void forget_service(std::uint32_t vf) { schedule_.forget_service(vf); }

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
    std::uint64_t chunks_ = 0;  ///< number of chunks so far
    Nanoseconds last_{0};       ///< time of the last event
    /// True between make_table() and the PF core's answer. No chunk may begin then, because an
    /// image lacks a table that is not yet installed or refused.
    bool is_table_open_ = false;
};

}  // namespace vgpu::daemon::trace
