// SPDX-License-Identifier: MIT
//
// Recorder: a GpuSchedule that keeps the last while of what it was told and asked, always, in
// bounded memory, like a flight recorder. What is kept is a CBOR sequence (RFC 8742) in chunks;
// each chunk begins with the schedule as it is then, so that one can begin with any of them:
//   {"vgpu_trace": 3, "chunk": N, "continues": B, "at": NS, "vgpud": V, "gpu": ID, "names": {VF:
//   NAME},
//    "unix_time": S, "schedule": [...]}   what follows counts its times from "at"
//   [kind, members…] …                    see event.cpp
// A client that reads on from where it was gets every chunk, or is told that it came too late.
// One thread; owned by GpuModel.
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

/// What was kept from some place on.
/// `bytes` is what is left of a chunk, and whole chunks: to be appended to what the reader has.
struct Piece {
    std::uint64_t next = 0;  ///< place to go on from
    bool is_late = false;    ///< what came before was dropped
    std::vector<std::uint8_t> bytes{};
};

/// Chunks of a sequence, the oldest dropped for the newest. Places are counted in bytes.
class ChunkRing {
public:
    /// A chunk ends with the first event beyond that: 256 KiB for each GPU, and a little more.
    static constexpr std::size_t kChunkBytes = 32u << 10;
    static constexpr std::size_t kChunks = 8;

    [[nodiscard]] bool wants_chunk() const {
        return chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes;
    }
    /// Drops the oldest chunk if kChunks are there.
    void begin(const Json& head);
    void append(const Json& item);
    /// From `after`, which an earlier Piece gave; without it from the oldest chunk on.
    /// OutOfRange if there never was such a place.
    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const;

private:
    struct Chunk {
        std::uint64_t place = 0;
        std::vector<std::uint8_t> bytes{};
    };
    std::deque<Chunk> chunks_;
};

/// Every change of the schedule goes through here, so that what is recorded is all there is to
/// know.
class Recorder {
public:
    struct Source {
        std::string gpu;
        /// Of the VFs there are now.
        std::function<std::map<std::uint32_t, std::string>()> names;
        std::function<std::int64_t()> unix_time;  ///< s
    };

    explicit Recorder(Source source) : source_(std::move(source)) {}

    /// To look at; it is changed through the Recorder only.
    const GpuSchedule* operator->() const { return &schedule_; }

    // as GpuSchedule has them
    void set_members(const std::vector<GpuSchedule::Member>& members, std::uint32_t max_gap_ms,
                     Nanoseconds now);
    void on_run(std::uint32_t vf, std::int64_t ns, Nanoseconds end, std::int64_t reserved_ns);
    void on_wake(std::uint32_t vf, Nanoseconds at);
    void on_idle(std::uint32_t vf, Nanoseconds at);
    void on_parked_idle(std::uint32_t vf, Nanoseconds at);
    void on_capped(std::uint32_t vf, Nanoseconds at);
    void on_missed(std::uint32_t vf, std::int64_t ns, std::int64_t reserved_ns);
    void restart();
    Result<vgpu_pf_run_table> make_table(std::uint64_t generation, Nanoseconds now);
    void installed(Nanoseconds now);
    void refused(Nanoseconds now);
    void adopt(const vgpu_pf_run_table& table, Nanoseconds now);

    /// Something that people should see beside the decisions.
    void note(std::uint32_t vf, std::string_view kind, std::string_view text, Nanoseconds now);

    [[nodiscard]] Result<Piece> read(std::optional<std::uint64_t> after) const {
        return ring_.read(after);
    }

private:
    /// Of others a GpuSchedule takes no notice.
    [[nodiscard]] bool knows(std::uint32_t vf) const { return schedule_.fluid().has(vf); }
    void tell(const Event& event);
    void write(const Event& event);
    void begin_chunk(bool continues);

    Source source_;
    GpuSchedule schedule_;
    ChunkRing ring_;
    std::uint64_t chunks_ = 0;
    Nanoseconds last_{0};  ///< time of the event written last
    /// A chunk would begin with an image that does not have it.
    bool is_table_open_ = false;  ///< made, neither installed nor refused yet
};

}  // namespace vgpu::daemon::trace
