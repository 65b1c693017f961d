// SPDX-License-Identifier: MIT
//
// Doorbells: the doorbell BAR (BAR2) of one VF. In this file a ring is one write of a doorbell, not
// a ring buffer. While the VF is on the engine, a ring goes straight to the DoorbellListener. While
// the VF is off the engine, RingLatch keeps the rings, and activate() replays them. Read pointer
// doorbells of the IH (interrupt handler) are never latched, because they take effect at once.
// Doorbells drops and counts a ring if the gate is shut, if the page of the doorbell is disabled,
// or if the ring is malformed.
//
// There are two modes. In Trap mode each ring is a trapped BAR write. In Poll mode the BAR is a
// memfd that the client maps, and scan() takes the rings from the enabled pages. A page has cells
// of 64 bits. All ones marks an empty cell, and any other value is a ring. scan() takes a ring with
// one atomic exchange, so no ring is seen twice. A later ring that overwrites a cell before the
// scan replaces the earlier ring. A 32-bit ring leaves the other half of its cell all ones, so
// scan() takes a cell with one half of all ones as a 32-bit ring. If both halves of a cell got a
// 32-bit ring since the last scan, scan() takes them as one 64-bit ring. A ring of all ones is lost
// in this mode. A client's mapping cannot be revoked: after renew() the former client keeps the old
// memfd, which nothing reads any more.
//
// The VF's own engines ring by a write to the BAR's address on the bus (mem/system_memory.h), on
// threads that may or may not hold the VF's lock. post() keeps such rings until step() and takes
// only a leaf lock. If post() took the VF's lock, the worker of a wave that rings could deadlock
// with a thread that holds this lock and waits for the worker.
//
// All calls are made with the VF's lock held, except post(), has_work(), mode() and, while the VF
// is built, make_mappable().
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/iov/ring_latch.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::iov {

/// How rings of the client reach the device; fixed when the VF is built.
enum class DoorbellMode : std::uint8_t { Trap, Poll };

/// Receives the rings of a VF. GpuVf implements this interface and passes the rings to CP, SDMA,
/// video and IH.
class DoorbellListener {
public:
    virtual ~DoorbellListener() = default;
    /// True if the IH took the ring as a read pointer; then no other block gets the ring.
    [[nodiscard]] virtual bool deliver_to_ih(const DoorbellRing& ring) = 0;
    /// A ring of an active VF, or a ring that activate() replays. A doorbell without a listening
    /// queue is ignored.
    virtual void deliver(const DoorbellRing& ring) = 0;
    /// Called when the first ring enters the empty latch of an inactive VF, or when an engine posts
    /// the first ring since step() took all rings. Any thread, with or without the VF's lock.
    virtual void work_arrived() = 0;
};

class Doorbells final : public PacketSource {
public:
    /// Counts since the device started; not part of a saved state.
    struct Counters {
        /// Rings that passed gate and pages, latched or not.
        std::uint64_t rung = 0;
        std::uint64_t latched = 0;  ///< rings that were latched because the VF was inactive
        std::uint64_t dropped = 0;  ///< rings with a shut gate or a disabled page, or malformed
    };

    explicit Doorbells(DoorbellListener& listener) : listener_(listener) {}
    ~Doorbells() override;
    Doorbells(const Doorbells&) = delete;
    Doorbells& operator=(const Doorbells&) = delete;

    /// Switches to Poll mode. Call this only while the VF is being built. Fails like renew().
    [[nodiscard]] Result<> make_mappable();
    /// Any thread.
    [[nodiscard]] DoorbellMode mode() const { return mode_; }
    /// Poll mode: makes a new memfd for the next client, or fails with the errno of memfd_create,
    /// ftruncate, fcntl or mmap. After an error the next client gets no memfd, and its rings are
    /// trapped. Trap mode: no effect.
    [[nodiscard]] Result<> renew();

    /// A BAR2 write: 4 or 8 bytes, naturally aligned; anything else is dropped.
    void write(std::uint64_t offset, std::span<const std::byte> data);
    /// Reads BAR2: fills `out` with RingLatch::read() of the latched rings.
    void read(std::uint64_t offset, std::span<std::byte> out) const;

    /// A shut gate drops new rings; latched rings stay and are still replayed.
    void set_gate(regs::Gate gate) { gate_ = gate; }
    /// Enables `count` pages of 4 KiB from page `first` of the BAR on, and disables all others.
    /// Both numbers are limited to the BAR; a count of 0 enables no page. Until the first call, all
    /// pages are enabled.
    void set_pages(std::uint32_t first, std::uint32_t count);

    /// A BAR2 write by the VF's own engines; size and alignment as in write(). Any thread, with or
    /// without the VF's lock.
    void post(std::uint64_t offset, std::span<const std::byte> data);
    /// Handles the posted rings of at most kMaxRings doorbells as if the client had written them to
    /// the BAR.
    StepResult step() override;
    /// True if posted rings wait. Any thread.
    [[nodiscard]] bool has_work() override { return has_posted_.load(); }
    [[nodiscard]] bool needs_polling() const override { return false; }

    /// The VF enters the engine: replays the latched rings, lowest doorbell first.
    void activate();
    /// The VF leaves the engine: rings are latched from now on.
    void deactivate();
    [[nodiscard]] bool has_latched() const { return !latched_.is_empty(); }

    /// Poll mode: takes rings from the enabled pages. `Thorough` looks at all of them, `Hot` only
    /// at the pages of the guest's kernel and at those that were rung since the last reset. Takes
    /// at most kMaxRings rings per call, so that a client that rings without end does not keep the
    /// VF lock busy. After kMaxRings rings, the next scan continues with the next page and is
    /// Thorough.
    enum class Scan : std::uint8_t { Hot, Thorough };
    void scan(Scan how);
    static constexpr std::size_t kMaxRings = 1024;
    /// The memfd of the BAR; -1 in Trap mode or after a failed renew(). This object owns the memfd,
    /// and renew() replaces it.
    [[nodiscard]] int memfd() const { return memfd_.get(); }

    /// Counts rings of the client (writes and scans) and of the engines.
    [[nodiscard]] const Counters& counters() const { return counters_; }

    void reset();  ///< forgets rings; gate, pages and counters stay
    void drain() {}
    /// Latched rings only: {count, then index, width and value of each}.
    void save(Writer& out) const;
    /// EPROTO if a ring lies outside the BAR or is misaligned, or the stream is short; nothing is
    /// latched then.
    [[nodiscard]] Result<> load(Reader& in);

private:
    static constexpr std::size_t kPageDwords = RingLatch::kPageDwords;

    [[nodiscard]] static std::optional<DoorbellRing> ring_of(std::uint64_t offset,
                                                             std::span<const std::byte> data);
    [[nodiscard]] bool is_enabled(std::uint64_t page) const;
    /// Every new well-formed ring passes here: checks gate and page, offers the ring to the IH and,
    /// unless the IH takes it, delivers or latches the ring.
    void receive(const DoorbellRing& ring);
    void latch(const DoorbellRing& ring);
    struct SavedRing;
    /// Takes at most `left` rings, and subtracts their number from `left`.
    void scan_page(std::size_t page, std::size_t& left);
    void unmap();

    DoorbellListener& listener_;
    DoorbellMode mode_ = DoorbellMode::Trap;
    regs::Gate gate_ = regs::Gate::Shut;
    std::uint32_t first_page_ = 0;
    std::uint32_t page_count_ = DOORBELL_PAGES;
    bool is_active_ = false;
    RingLatch latched_;
    Counters counters_;

    PiMutex posted_mutex_;          // a leaf lock; guards posted_ and posted_bad_
    RingLatch posted_;              // rings that step() has not taken yet
    std::uint64_t posted_bad_ = 0;  // malformed rings that step() has not counted yet
    std::atomic<bool> has_posted_{false};
    std::vector<DoorbellRing> taken_;  // a member, so that step() reuses its memory

    OwnedFd memfd_;
    std::span<std::uint64_t> bar_;  // Poll: the BAR, as the client maps it
    /// Poll: pages that were rung since the last reset.
    std::bitset<DOORBELL_PAGES> is_hot_;
    /// True if the last scan took kMaxRings rings; the next scan is then thorough.
    bool is_cut_short_ = false;
    std::size_t next_page_ = 0;  ///< the page at which the next scan begins
};

}  // namespace vgpu::softgpu::iov
