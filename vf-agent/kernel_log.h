// SPDX-License-Identifier: MIT
//
// KernelLog: counts amdgpu's resets and errors in /dev/kmsg since boot. All counts are 0 if the
// agent may not read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::agent {

/// Counts are lower bounds, because records may be overwritten before they are read.
class KernelLog {
public:
    /// Starts at the oldest record.
    explicit KernelLog(const std::string& path = "/dev/kmsg");
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;

    /// Reads a bounded number of records; never waits.
    void read();
    /// Counts one record "PRIORITY,SEQUENCE,TIME,…;TEXT".
    void count_record(std::string_view record);

    /// Number of amdgpu's lines "GPU reset(N) succeeded!".
    [[nodiscard]] std::uint64_t resets() const { return resets_; }
    /// Number of lines with "amdgpu" that also have level "err" or worse or contain "*ERROR*".
    [[nodiscard]] std::uint64_t errors() const { return errors_; }
    /// The newest error, at most 160 bytes.
    [[nodiscard]] const std::string& last_error() const { return last_error_; }

private:
    int fd_ = -1;
    std::uint64_t resets_ = 0, errors_ = 0;
    std::string last_error_;
};

}  // namespace vgpu::agent
