// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/doorbells.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {

namespace {

constexpr std::uint64_t kNothingRung = ~0ull;
constexpr std::uint32_t kNothingRungHalf = ~0u;
constexpr std::size_t kPageQwords = DOORBELL_PAGE_BYTES / sizeof(std::uint64_t);
/// Pages of the doorbells of the guest's kernel; hot scans include these pages.
constexpr std::size_t kKernelPages =
    DOORBELL_PROCESS_FIRST * sizeof(std::uint32_t) / DOORBELL_PAGE_BYTES;

}  // namespace

Doorbells::~Doorbells() {
    unmap();
}

void Doorbells::unmap() {
    if (!bar_.empty()) munmap(bar_.data(), bar_.size_bytes());
    bar_ = {};
    memfd_.reset();
}

Result<> Doorbells::make_mappable() {
    mode_ = DoorbellMode::Poll;
    return renew();
}

/// Seals the size of the memfd: if a client could shrink the memfd, the next scan would kill
/// softgpu with SIGBUS.
Result<> Doorbells::renew() {
    if (mode_ == DoorbellMode::Trap) return {};
    unmap();
    OwnedFd fd(memfd_create("softgpu-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (!fd || ftruncate(fd.get(), DOORBELL_BAR_BYTES) != 0 ||
        fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
        return fail_errno(errno, "cannot make the memfd of a doorbell BAR");
    void* address =
        mmap(nullptr, DOORBELL_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) return fail_errno(errno, "cannot map a doorbell BAR");
    memfd_ = std::move(fd);
    bar_ = {static_cast<std::uint64_t*>(address), DOORBELL_BAR_BYTES / sizeof(std::uint64_t)};
    std::ranges::fill(bar_, kNothingRung);
    return {};
}

/// The ring of a BAR write. nullopt if the write is misaligned, is beyond the BAR, or has neither 4
/// nor 8 bytes; no driver makes such a write.
std::optional<DoorbellRing> Doorbells::ring_of(std::uint64_t offset,
                                               std::span<const std::byte> data) {
    const bool is_qword = data.size() == sizeof(std::uint64_t);
    const bool is_sized = is_qword || data.size() == sizeof(std::uint32_t);
    if (!is_sized || offset % data.size() != 0 || offset >= DOORBELL_BAR_BYTES) return std::nullopt;
    const DoorbellIndex index{static_cast<std::uint32_t>(offset / sizeof(std::uint32_t))};
    if (is_qword)
        return DoorbellRing{index, softgpu::load<std::uint64_t>(data), DoorbellRing::Width::Qword};
    return DoorbellRing{index, softgpu::load<std::uint32_t>(data), DoorbellRing::Width::Dword};
}

void Doorbells::write(std::uint64_t offset, std::span<const std::byte> data) {
    if (const std::optional<DoorbellRing> ring = ring_of(offset, data))
        receive(*ring);
    else
        ++counters_.dropped;
}

/// For debuggers: drivers never read doorbells.
void Doorbells::read(std::uint64_t offset, std::span<std::byte> out) const {
    latched_.read(offset, out);
}

/// Calls the listener only for the first ring after step() has taken all rings, so that a fast
/// engine causes few calls.
void Doorbells::post(std::uint64_t offset, std::span<const std::byte> data) {
    {
        const std::scoped_lock lock(posted_mutex_);
        if (const std::optional<DoorbellRing> ring = ring_of(offset, data))
            posted_.latch(*ring);
        else
            ++posted_bad_;
        if (has_posted_.exchange(true)) return;
    }
    listener_.work_arrived();
}

/// Releases the leaf lock before it handles the rings, because the listener may take other locks.
StepResult Doorbells::step() {
    if (!has_posted_) return StepResult::Idle;
    {
        const std::scoped_lock lock(posted_mutex_);
        posted_.take(kMaxRings, [this](const DoorbellRing& ring) { taken_.push_back(ring); });
        counters_.dropped += std::exchange(posted_bad_, 0);
        has_posted_ = !posted_.is_empty();
    }
    for (const DoorbellRing& ring : taken_) receive(ring);
    taken_.clear();
    return StepResult::Progress;
}

void Doorbells::set_pages(std::uint32_t first, std::uint32_t count) {
    first_page_ = std::min<std::uint32_t>(first, DOORBELL_PAGES);
    page_count_ = std::min<std::uint32_t>(count, DOORBELL_PAGES - first_page_);
}

bool Doorbells::is_enabled(std::uint64_t page) const {
    return page >= first_page_ && page - first_page_ < page_count_;
}

void Doorbells::receive(const DoorbellRing& ring) {
    const std::uint64_t page = raw(ring.index) / kPageDwords;
    if (gate_ == regs::Gate::Shut || !is_enabled(page)) {
        ++counters_.dropped;
        return;
    }
    ++counters_.rung;
    if (listener_.deliver_to_ih(ring)) return;
    if (is_active_)
        listener_.deliver(ring);
    else
        latch(ring);
}

void Doorbells::latch(const DoorbellRing& ring) {
    const bool is_first = latched_.is_empty();
    latched_.latch(ring);
    ++counters_.latched;
    if (is_first) listener_.work_arrived();
}

void Doorbells::activate() {
    is_active_ = true;
    latched_.take(RingLatch::kAll, [this](const DoorbellRing& ring) { listener_.deliver(ring); });
}

/// No packet or wave of the VF runs any more, so none posts rings. First handles the rings that
/// were posted before; if the VF was active, they count as rings of an active VF.
void Doorbells::deactivate() {
    while (step() == StepResult::Progress) {
    }
    is_active_ = false;
}

/// After a scan that took kMaxRings rings, the next scan begins at the page after the last page
/// that this scan visited. So a page with many rings does not keep other pages waiting.
void Doorbells::scan(Scan how) {
    if (bar_.empty()) return;
    const bool is_thorough = how == Scan::Thorough || is_cut_short_;
    std::size_t left = kMaxRings;
    std::size_t page = next_page_;
    for (std::size_t i = 0; i < DOORBELL_PAGES && left != 0; ++i) {
        const bool is_scanned = is_thorough || page < kKernelPages || is_hot_[page];
        if (is_scanned && is_enabled(page)) scan_page(page, left);
        page = (page + 1) % DOORBELL_PAGES;
    }
    is_cut_short_ = left == 0;
    next_page_ = page;
}

/// Most cells are empty: the plain load keeps their cache lines shared, and only a cell with a ring
/// costs an exchange. The exchange also takes a ring that arrives between load and exchange, so no
/// ring is lost.
void Doorbells::scan_page(std::size_t page, std::size_t& left) {
    for (std::size_t i = 0; i < kPageQwords && left != 0; ++i) {
        const std::size_t qword = page * kPageQwords + i;
        const std::atomic_ref<std::uint64_t> cell(bar_[qword]);
        if (cell.load(std::memory_order_relaxed) == kNothingRung) continue;
        const std::uint64_t value = cell.exchange(kNothingRung, std::memory_order_acq_rel);
        is_hot_[page] = true;
        --left;
        const auto low = static_cast<std::uint32_t>(2 * qword);
        if (low32(value) == kNothingRungHalf)
            receive({DoorbellIndex{low + 1}, high32(value), DoorbellRing::Width::Dword});
        else if (high32(value) == kNothingRungHalf)
            receive({DoorbellIndex{low}, low32(value), DoorbellRing::Width::Dword});
        else
            receive({DoorbellIndex{low}, value, DoorbellRing::Width::Qword});
    }
}

void Doorbells::reset() {
    latched_.clear();
    {
        const std::scoped_lock lock(posted_mutex_);
        posted_.clear();
        has_posted_ = false;
    }
    is_hot_.reset();
    is_cut_short_ = false;
    next_page_ = 0;
    for (std::uint64_t& qword : bar_) std::atomic_ref(qword).store(kNothingRung);
}

/// A latched ring in a state stream. It has no padding, and no enum whose value load() would have
/// to trust.
struct Doorbells::SavedRing {
    std::uint32_t index = 0;
    std::uint32_t width = 0;
    std::uint64_t value = 0;
};

void Doorbells::save(Writer& out) const {
    std::uint64_t count = 0;
    latched_.for_each([&](const DoorbellRing&) { ++count; });
    out.value(count);
    latched_.for_each([&](const DoorbellRing& ring) {
        out.value(SavedRing{raw(ring.index), static_cast<std::uint32_t>(ring.width), ring.value});
    });
}

/// Before it loads a ring, checks the count against the bytes that the stream still has.
Result<> Doorbells::load(Reader& in) {
    reset();
    std::uint64_t count = 0;
    TRY_VOID(in.value(count));
    if (count > in.remaining() / sizeof(SavedRing))
        return fail(EPROTO, "state stream holds more doorbells than bytes");
    for (std::uint64_t i = 0; i < count; ++i) {
        SavedRing saved;
        const Result<> read = in.value(saved);
        const bool is_wide = saved.width == static_cast<std::uint32_t>(DoorbellRing::Width::Qword);
        if (!read || (is_wide && saved.index % 2 != 0) ||
            saved.index >= DOORBELL_PAGES * kPageDwords) {
            reset();
            return fail(EPROTO, "state stream holds a doorbell outside the BAR");
        }
        latched_.latch({DoorbellIndex{saved.index}, saved.value,
                        is_wide ? DoorbellRing::Width::Qword : DoorbellRing::Width::Dword});
    }
    return {};
}

}  // namespace vgpu::softgpu::iov
