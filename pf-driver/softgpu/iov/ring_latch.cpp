// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/ring_latch.h"

#include <algorithm>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {

namespace {

template <typename Values>
std::uint64_t get(const Values& values, std::size_t dword, bool is_wide) {
    return join(values[dword], is_wide ? values[dword + 1] : 0);
}

/// A 64-bit ring is aligned, so its high half is in the same page.
template <typename Values> void put(Values& values, std::size_t dword, const DoorbellRing& ring) {
    values[dword] = low32(ring.value);
    if (ring.width == DoorbellRing::Width::Qword) values[dword + 1] = high32(ring.value);
}

/// Write pointers wrap: a is larger if 0 < a - b < half the range.
bool is_larger(std::uint64_t a, std::uint64_t b, DoorbellRing::Width width) {
    if (width == DoorbellRing::Width::Qword) return static_cast<std::int64_t>(a - b) > 0;
    return static_cast<std::int32_t>(low32(a) - low32(b)) > 0;
}

}  // namespace

void RingLatch::latch(const DoorbellRing& ring) {
    auto& page = pages_[raw(ring.index) / kPageDwords];
    if (!page) page = std::make_unique<Page>();
    const std::size_t dword = raw(ring.index) % kPageDwords;
    const bool is_wide = ring.width == DoorbellRing::Width::Qword;
    const bool is_known = page->is_kept[dword] && page->is_wide[dword] == is_wide;
    if (!page->is_kept[dword]) ++count_;
    page->is_kept[dword] = true;
    page->is_wide[dword] = is_wide;
    if (!is_known || is_larger(ring.value, get(page->largest, dword, is_wide), ring.width))
        put(page->largest, dword, ring);
    put(page->latest, dword, ring);
}

/// Calls `sink` with the largest value if it differs from the latest, then with the latest.
void RingLatch::deliver(std::size_t page, std::size_t dword,
                        const std::function<void(const DoorbellRing&)>& sink) const {
    const Page& from = *pages_[page];
    const bool is_wide = from.is_wide[dword];
    DoorbellRing out{DoorbellIndex{static_cast<std::uint32_t>(page * kPageDwords + dword)},
                     get(from.largest, dword, is_wide),
                     is_wide ? DoorbellRing::Width::Qword : DoorbellRing::Width::Dword};
    const std::uint64_t latest = get(from.latest, dword, is_wide);
    if (out.value != latest) sink(out);
    out.value = latest;
    sink(out);
}

void RingLatch::take(std::size_t max, const std::function<void(const DoorbellRing&)>& sink) {
    while (count_ != 0 && max != 0) {
        auto& page = pages_[next_page_];
        for (std::size_t i = 0; page && i < kPageDwords && max != 0; ++i) {
            if (!page->is_kept[i]) continue;
            deliver(next_page_, i, sink);
            page->is_kept[i] = false;
            --count_;
            --max;
        }
        if (page && page->is_kept.none()) page.reset();
        next_page_ = (next_page_ + 1) % pages_.size();
    }
    if (count_ == 0) next_page_ = 0;
}

void RingLatch::for_each(const std::function<void(const DoorbellRing&)>& sink) const {
    for (std::size_t page = 0; page < pages_.size(); ++page)
        for (std::size_t i = 0; pages_[page] && i < kPageDwords; ++i)
            if (pages_[page]->is_kept[i]) deliver(page, i, sink);
}

void RingLatch::read(std::uint64_t offset, std::span<std::byte> out) const {
    std::ranges::fill(out, std::byte{0});
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t at = offset + i;
        if (at >= DOORBELL_BAR_BYTES) return;
        const auto& page = pages_[at / DOORBELL_PAGE_BYTES];
        if (page) out[i] = std::as_bytes(std::span(page->latest))[at % DOORBELL_PAGE_BYTES];
    }
}

void RingLatch::clear() {
    for (auto& page : pages_) page.reset();
    count_ = 0;
    next_page_ = 0;
}

}  // namespace vgpu::softgpu::iov
