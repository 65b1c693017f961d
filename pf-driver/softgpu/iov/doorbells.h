// SPDX-License-Identifier: MIT
//
// Doorbell BAR (BAR2) of one VF. While the VF is on the engine a ring goes straight to whoever
// listens; while it is off the latest value per doorbell is latched and replayed by activate().
// Read pointer doorbells of the IH are live all the time. A shut gate or a page the PF did not
// enable drops the ring; everything is counted.
//
// Two modes (D13): in Trap each ring is a BAR write. In Poll the BAR is a memfd the client maps;
// scan() takes what was rung. A page is then filled with all ones ("nothing rung"), a ring is any
// other value, and taking it is one atomic exchange, so no ring is lost or seen twice. A 32-bit
// ring leaves the other half all ones. Who rings all ones rings nothing: no pointer has that value.
// A mapping that a client has cannot be taken back: renew() leaves the former one the old memfd,
// which nobody looks at any more.
//
// The VF's own engines ring by a write to the BAR's address on the bus (mem/system_memory.h), on
// threads that may hold the VF's lock or not. post() keeps such rings until step(), so a
// wave that rings never waits for a lock that its own worker is waited for with.
//
// All calls with the VF's lock held, but for post() and has_work().
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

/// Fixed while the VF is built.
enum class DoorbellMode : std::uint8_t { Trap, Poll };

/// Who listens; implemented over CP, SDMA and IH.
class DoorbellListener {
public:
    virtual ~DoorbellListener() = default;
    /// True if the IH took it as a read pointer: then it is nobody else's.
    [[nodiscard]] virtual bool ring_interrupts(const Ring& ring) = 0;
    /// Of an active VF, or replayed by activate(). A doorbell nobody listens to is ignored.
    virtual void ring(const Ring& ring) = 0;
    /// The first ring of an inactive VF since it went off the engine.
    virtual void latched_work() = 0;
    /// An engine has rung, and step() has taken all before. Any thread, with or without the
    /// VF's lock.
    virtual void posted_work() = 0;
};

class Doorbells final : public PacketSource {
public:
    /// Since the device started; not part of a saved state.
    struct Counters {
        /// Every ring that passed gate and pages, latched or not.
        std::uint64_t rung = 0;
        std::uint64_t latched = 0;
        std::uint64_t dropped = 0;  ///< gate shut, page not enabled or malformed
    };

    explicit Doorbells(DoorbellListener& listener) : listener_(listener) {}
    ~Doorbells() override;
    Doorbells(const Doorbells&) = delete;
    Doorbells& operator=(const Doorbells&) = delete;

    /// While building: Poll mode from now on.
    [[nodiscard]] Result<> make_mappable();
    /// Any thread.
    [[nodiscard]] DoorbellMode mode() const { return mode_; }
    /// Poll mode: the next client gets a memfd of its own. On an error it gets none, and its rings
    /// are trapped.
    [[nodiscard]] Result<> renew();

    /// A BAR2 write: 4 or 8 bytes, naturally aligned; anything else is dropped.
    void write(std::uint64_t offset, std::span<const std::byte> data);
    /// BAR2 reads back what is latched, 0 otherwise.
    void read(std::uint64_t offset, std::span<std::byte> out) const;

    /// Shut drops new rings; what is latched stays and is replayed all the same.
    void set_gate(regs::Gate gate) { gate_ = gate; }
    /// Pages the PF enabled, counted in 4 KiB from the start of the BAR.
    /// Both are cut to the BAR; a count of 0 enables none. All pages are enabled at the start.
    void set_pages(std::uint32_t first, std::uint32_t count);

    /// A BAR2 write by the VF's own engines, with the rules of write(). Any thread, whatever it
    /// holds.
    void post(std::uint64_t offset, std::span<const std::byte> data);
    /// Takes what engines have rung as if it had been written to the BAR, at most kMostRings
    /// doorbells.
    StepResult step() override;
    /// Of what engines have rung. Any thread.
    [[nodiscard]] bool has_work() override { return has_posted_.load(); }
    [[nodiscard]] bool needs_polling() const override { return false; }

    /// The VF gets the engine: what was latched is rung, lowest doorbell first.
    void activate();
    /// From here on rings are latched.
    void deactivate();
    [[nodiscard]] bool has_latched() const { return !latched_.is_empty(); }

    /// Poll mode: takes rings from the pages; `Thorough` looks at every enabled page, `Hot` at
    /// those that have been rung before and at the kernel's. At most kMostRings: who rings without
    /// end does not hold the VF lock for as long. The next scan takes the rest.
    enum class Scan : std::uint8_t { Hot, Thorough };
    void scan(Scan how);
    static constexpr std::size_t kMostRings = 1024;
    /// The memfd of the BAR in Poll mode, else -1. Owned here, until renew().
    [[nodiscard]] int memfd() const { return memfd_.get(); }

    /// Also of rings that a scan took.
    [[nodiscard]] const Counters& counters() const { return counters_; }

    void reset();  ///< forgets what is latched or posted; gate, pages and counters stay
    void drain() {}
    /// Latched rings only: {count, then index, width and value of each}.
    void save(Writer& out) const;
    /// EPROTO if a ring lies outside the BAR or is misaligned; nothing is latched then.
    [[nodiscard]] Result<> load(Reader& in);

private:
    static constexpr std::size_t kPageDwords = RingLatch::kPageDwords;

    [[nodiscard]] static std::optional<Ring> ring_of(std::uint64_t offset,
                                                     std::span<const std::byte> data);
    [[nodiscard]] bool is_enabled(std::uint64_t page) const;
    /// The one way in, from BAR writes and scans: gate, pages, IH, then ring or latch.
    void take(const Ring& ring);
    void latch(const Ring& ring);
    struct SavedRing;
    /// Takes at most `left` rings and counts it down.
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

    PiMutex posted_mutex_;          // leaf
    RingLatch posted_;              // posted_mutex_
    std::uint64_t posted_bad_ = 0;  // posted_mutex_; malformed, not counted yet
    std::atomic<bool> has_posted_{false};
    std::vector<Ring> taken_;  // a member, so that taking allocates nothing after a while

    OwnedFd memfd_;
    std::span<std::uint64_t> bar_;  // Poll: the BAR as the client sees it
    /// Poll: rung at least once since the last reset.
    std::bitset<DOORBELL_PAGES> is_hot_;
    /// The last scan took as many rings as it may: the next one is thorough, and begins behind it.
    bool is_cut_short_ = false;
    std::size_t next_page_ = 0;
};

}  // namespace vgpu::softgpu::iov
