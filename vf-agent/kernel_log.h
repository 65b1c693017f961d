// SPDX-License-Identifier: MIT
//
// KernelLog: what amdgpu said of resets and errors, counted from /dev/kmsg since the guest's boot.
// Without the right to read it, everything stays 0. Guest gives it a turn before each status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::agent {

/// A count is a lower bound: records that the kernel overwrote before they were read are not in it.
class KernelLog {
public:
    /// Opening starts at the oldest record that the kernel still has.
    explicit KernelLog(const std::string& path = "/dev/kmsg");
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;

    /// Reads what is new, a bounded number of records at a time.
    /// Never waits. What is left over comes with the next call.
    void read();
    /// One record: "PRIORITY,SEQUENCE,TIME,…;TEXT".
    void take(std::string_view record);

    /// Resets that succeeded, as amdgpu's "GPU reset(N) succeeded!" says.
    [[nodiscard]] std::uint64_t resets() const { return resets_; }
    /// amdgpu's lines of level "err" and worse, and those that drm marks with *ERROR*.
    [[nodiscard]] std::uint64_t errors() const { return errors_; }
    /// Of the newest of these, at most 160 bytes; empty if there was none.
    [[nodiscard]] const std::string& last_error() const { return last_error_; }

private:
    int fd_ = -1;
    std::uint64_t resets_ = 0, errors_ = 0;
    std::string last_error_;
};

}  // namespace vgpu::agent
