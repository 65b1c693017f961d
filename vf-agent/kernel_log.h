// SPDX-License-Identifier: MIT
//
// KernelLog: counts amdgpu's resets and errors since boot in the kernel log (/dev/kmsg), for the
// agent's status. All counts are 0 if /dev/kmsg is not readable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::agent {

/// The counts are lower bounds, because the kernel may overwrite a record before KernelLog reads
/// it.
class KernelLog {
public:
    /// The first read() begins with the oldest record.
    explicit KernelLog(const std::string& path = "/dev/kmsg");
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;

    /// Reads and counts new records, at most 2000. Does not wait.
    void read();
    /// Counts a record of the form "PRIORITY,SEQUENCE,TIME,…;TEXT".
    void count_record(std::string_view record);

    /// Number of lines such as "amdgpu …: GPU reset(N) succeeded!".
    [[nodiscard]] std::uint64_t resets() const { return resets_; }
    /// Number of lines with "amdgpu" that have the level KERN_ERR or worse, or contain "*ERROR*".
    [[nodiscard]] std::uint64_t errors() const { return errors_; }
    /// The newest line that errors() counts, cut at 160 bytes.
    [[nodiscard]] const std::string& last_error() const { return last_error_; }

private:
    int fd_ = -1;
    std::uint64_t resets_ = 0, errors_ = 0;
    std::string last_error_;
};

}  // namespace vgpu::agent
