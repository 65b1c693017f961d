// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/run_log.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {

void RunLog::configure(Iova base, std::uint32_t entries) {
    constexpr std::uint64_t kAlignment = 4096;
    const bool is_usable =
        std::has_single_bit(entries) && entries <= kMaxEntries && raw(base) % kAlignment == 0;
    const std::scoped_lock lock(mutex_);
    base_ = base;
    entries_ = is_usable ? entries : 0;
    written_ = 0;
}

/// Writes the entry with seq 0, then, after a fence, the sequence number, because a reader on
/// another CPU may read at any time. The number increases even if a write fails, so that the reader
/// sees the gap.
void RunLog::append(vgpu_hw_run_log_entry entry) {
    const std::scoped_lock lock(mutex_);
    if (entries_ == 0) return;
    const Iova at{raw(base_) + written_ % entries_ * sizeof(entry)};
    entry.seq = 0;
    const bool is_written = write_(at, bytes_of(std::as_const(entry)));
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t sequence = ++written_;
    static_assert(offsetof(vgpu_hw_run_log_entry, seq) == 0);
    if (!is_written || !write_(at, bytes_of(sequence))) ++lost_;
}

std::uint32_t RunLog::write_pointer() const {
    const std::scoped_lock lock(mutex_);
    return low32(written_);
}

std::uint64_t RunLog::lost() const {
    const std::scoped_lock lock(mutex_);
    return lost_;
}

}  // namespace vgpu::softgpu::iov
