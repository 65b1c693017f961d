// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/video/job.h"

#include <algorithm>
#include <array>
#include <span>

#include "pf-driver/hw/video.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::video {

namespace {

constexpr std::uint32_t kDwordBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kPageBytes = mem::Port::kPageBytes;

/// The job's dwords, read one page at a time.
class Window {
public:
    Window(mem::Port& memory, GpuVa address, std::uint32_t dwords)
        : memory_(memory), address_(raw(address)), dwords_(dwords) {}

    /// False if the dword cannot be read; `at` is below the job's length.
    [[nodiscard]] bool read(std::uint32_t at, std::uint32_t& value) {
        if (at - first_ >= count_ && !move(at)) return false;
        value = page_[at - first_];
        return true;
    }

private:
    bool move(std::uint32_t at) {
        const std::uint64_t from = address_ + std::uint64_t{at} * kDwordBytes;
        const std::uint64_t in_page = (kPageBytes - from % kPageBytes) / kDwordBytes;
        first_ = at;
        count_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(in_page, dwords_ - at));
        return memory_.read(GpuVa{from}, std::as_writable_bytes(std::span(page_).first(count_)));
    }

    mem::Port& memory_;
    const std::uint64_t address_;
    const std::uint32_t dwords_;
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
    std::array<std::uint32_t, kPageBytes / kDwordBytes> page_;
};

}  // namespace

/// A frame length of 0 is padding and ends the job; every other length advances, so the walk ends.
JobResult walk_job(mem::Port& memory, GpuVa address, std::uint32_t dwords) {
    if (dwords > VIDEO_MAX_IB_DWORDS) return JobResult::Bad;
    Window window(memory, address, dwords);
    for (std::uint32_t at = 0; at < dwords;) {
        std::uint32_t bytes = 0;
        if (!window.read(at, bytes)) return JobResult::Fault;
        if (bytes == 0) return JobResult::Walked;
        const bool is_whole = bytes >= VIDEO_MIN_COMMAND_BYTES && bytes % kDwordBytes == 0;
        if (!is_whole || bytes / kDwordBytes > dwords - at) return JobResult::Bad;
        at += bytes / kDwordBytes;
    }
    return JobResult::Walked;
}

}  // namespace vgpu::softgpu::video
