// SPDX-License-Identifier: MIT
//
// HostSysfs: implements Sysfs with the files of this machine. A read or write is one open, one
// transfer and one close, as cat or echo in a shell would do. Has no state, so any thread may call
// a HostSysfs.
#pragma once

#include "daemon/backend/sriov/sysfs.h"

namespace vgpu::daemon::sriov {

class HostSysfs final : public Sysfs {
public:
    /// `root` is put before every path; in tests, a directory with a tree that looks like sysfs.
    explicit HostSysfs(std::string root = "") : root_(std::move(root)) {}

    SysfsResult<std::string> read(const std::string& path) override;
    SysfsResult<> write(const std::string& path, std::string_view text) override;
    SysfsResult<std::vector<std::string>> list(const std::string& path) override;
    SysfsResult<std::string> link(const std::string& path) override;
    std::optional<unsigned> mode(const std::string& path) override;

private:
    const std::string root_;
};

}  // namespace vgpu::daemon::sriov
