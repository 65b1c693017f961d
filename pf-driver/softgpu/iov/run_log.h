// SPDX-License-Identifier: MIT
//
// RunLog: writes one vgpu_hw_run_log_entry per time slice of a VF on the engine into a ring in the
// PF's memory. RunLog writes the sequence number of an entry last, so that the PF can recognise an
// incomplete entry. If RunLog cannot write an entry to the PF's memory, it drops and counts the
// entry.
//
// A thread that holds the action lock of the world switch (world_switch.h) calls append(). The io
// thread (gpu.h) calls configure() and write_pointer(). Any thread may call lost().
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
    /// Largest size of the ring in entries of 64 bytes. A PF that requests more gets no log.
    static constexpr std::uint32_t kMaxEntries = 1u << 20;
    /// Writes to the PF's memory; false if the PF has no memory at the address. Must not block,
    /// because the threads that switch worlds call it.
    using WriteMemory = std::function<bool(Iova, std::span<const std::byte>)>;

    explicit RunLog(WriteMemory write) : write_(std::move(write)) {}

    /// Sets the ring: `entries` is a power of two up to kMaxEntries, or 0 for no log; `base` is
    /// aligned to 4 KiB. Other values switch the log off. The write pointer starts at 0 again.
    void configure(Iova base, std::uint32_t entries);
    /// Writes an entry and fills in its `seq`: 1 for the first entry since configure(); 0 in memory
    /// means that an entry is not complete. A full ring overwrites its oldest entry. A gap in `seq`
    /// shows a reader that entries were lost. Without a ring, does nothing.
    void append(vgpu_hw_run_log_entry entry);
    /// Entries appended since configure(), written or lost; low 32 bits.
    [[nodiscard]] std::uint32_t write_pointer() const;
    /// Number of entries that could not be written, since the device started.
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
