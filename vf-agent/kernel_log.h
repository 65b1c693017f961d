// SPDX-License-Identifier: MIT
//
// KernelLog counts the resets and errors that amdgpu has logged to /dev/kmsg since the guest's
// boot. Without the right to read it, all counts stay 0. LinuxGuest reads before each status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::agent {

/// Counts are lower bounds: records that the kernel overwrote before they were read are missing.
class KernelLog {
public:
    /// Starts at the oldest record that the kernel still has.
    explicit KernelLog(const std::string& path = "/dev/kmsg");
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;

    /// Reads new records, at most a bounded number of them, and never waits.
    /// The next call reads the rest.
    void read();
    /// One record: "PRIORITY,SEQUENCE,TIME,…;TEXT".
    void take(std::string_view record);

    /// Successful resets: amdgpu's lines "GPU reset(N) succeeded!".
    [[nodiscard]] std::uint64_t resets() const { return resets_; }
    /// amdgpu's lines of level "err" and worse, and those that drm marks with *ERROR*.
    [[nodiscard]] std::uint64_t errors() const { return errors_; }
    /// Text of the newest of these errors, at most 160 bytes; empty if there was none.
    [[nodiscard]] const std::string& last_error() const { return last_error_; }

private:
    int fd_ = -1;
    std::uint64_t resets_ = 0, errors_ = 0;
    std::string last_error_;
};

}  // namespace vgpu::agent
