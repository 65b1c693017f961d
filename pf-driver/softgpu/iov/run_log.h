// SPDX-License-Identifier: MIT
//
// RunLog: writes one vgpu_hw_run_log_entry per time slice of a VF on the engine into a ring in the
// PF's memory. An entry's sequence number is written last, so the PF never reads half an entry. If
// the ring's memory is missing, entries are lost and counted, with no other effect.
//
// A thread that holds the action lock of the world switch calls append(). The io thread calls
// configure() and write_pointer(). Any thread may call lost().
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"

namespace vgpu::softgpu::iov {

/// Entries have the layout of vgpu_hw_run_log_entry (hw/gpuiov.h); times are ns of the clock of
/// VGPU_TIME_NS.
class RunLog {
public:
    /// A PF that asks for more entries gets no log. An entry has 64 bytes.
    static constexpr std::uint32_t kMaxEntries = 1u << 20;
    /// Writes to the PF's memory; false if the PF has no memory at the address. Must not block,
    /// because the threads that switch worlds call it.
    using WriteMemory = std::function<bool(Iova, std::span<const std::byte>)>;

    explicit RunLog(WriteMemory write) : write_(std::move(write)) {}

    /// `entries` is a power of two up to kMaxEntries, or 0 for no log; `base` is 4 KiB aligned.
    /// Other values switch the log off. The write pointer starts at 0 again.
    void configure(Iova base, std::uint32_t entries);
    /// Fills in `seq`: 1 for the first entry since configure(), so that 0 means "never written".
    /// The ring overwrites its oldest entry; a gap in `seq` shows a reader that entries were lost.
    void append(vgpu_hw_run_log_entry entry);
    /// Entries appended since configure(), low 32 bits.
    [[nodiscard]] std::uint32_t write_pointer() const;
    /// Entries whose memory was missing, since the device started.
    [[nodiscard]] std::uint64_t lost() const;

private:
    WriteMemory write_;
    mutable PiMutex mutex_;
    Iova base_{};
    std::uint32_t entries_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace vgpu::softgpu::iov
