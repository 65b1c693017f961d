// SPDX-License-Identifier: MIT
//
// RunLog: writes one vgpu_hw_run_log_entry per stay of a VF on the engine into a ring in the PF's
// memory. The sequence number is written last, so the PF never reads half an entry. A ring on
// memory that is not there loses its entries (counted), nothing else.
//
// append(): device thread. configure(), write_pointer(): io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"

namespace vgpu::softgpu::iov {

/// Entries have the layout of vgpu_hw_run_log_entry (hw/gpuiov.h); times in it are ns of
/// VGPU_TIME_NS.
class RunLog {
public:
    /// Of 64 bytes each; a PF that asks for more gets no log.
    static constexpr std::uint32_t kMaxEntries = 1u << 20;
    /// False if the PF has no such memory. Must not block: the device thread calls it.
    using WriteMemory = std::function<bool(Iova, std::span<const std::byte>)>;

    explicit RunLog(WriteMemory write) : write_(std::move(write)) {}

    /// `entries` a power of two, 0 for none; `base` 4 KiB aligned. Anything else switches the log
    /// off. The write pointer starts at 0 again.
    void configure(Iova base, std::uint32_t entries);
    /// `seq` is filled in here: 1 for the first entry since configure(), so that 0 means "never
    /// written". The ring overwrites its oldest entry; a reader that sees a gap in `seq` has lost
    /// some.
    void append(vgpu_hw_run_log_entry entry);
    /// Entries written since configure(), low 32 bits.
    [[nodiscard]] std::uint32_t write_pointer() const;
    /// Entries whose memory was not there, since the device started.
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
