// SPDX-License-Identifier: MIT
//
// KernelLog: what amdgpu said of resets and errors, counted from /dev/kmsg since the guest's boot.
// Without the right to read it, everything stays 0. Guest gives it a turn before each status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::agent {

class KernelLog {
public:
    explicit KernelLog(const std::string& path = "/dev/kmsg");
    ~KernelLog();
    KernelLog(const KernelLog&) = delete;
    KernelLog& operator=(const KernelLog&) = delete;

    /// Reads what is new, a bounded number of records at a time.
    void read();
    /// One record: "PRIORITY,SEQUENCE,TIME,…;TEXT".
    void take(std::string_view record);

    [[nodiscard]] std::uint64_t resets() const { return resets_; }
    [[nodiscard]] std::uint64_t errors() const { return errors_; }
    [[nodiscard]] const std::string& last_error() const { return last_error_; }

private:
    int fd_ = -1;
    std::uint64_t resets_ = 0, errors_ = 0;
    std::string last_error_;
};

}  // namespace vgpu::agent
