// SPDX-License-Identifier: MIT
//
// BoundedSysfs: gives every write, and every read that may wait for a lock, a time limit. Writing 0
// to sriov_numvfs sleeps in the kernel, beyond the reach of signals, until the last user of a VF
// closes it (drivers/pci/iov.c, vfio). So a detached thread makes these calls. If a call is late,
// its caller gets EINPROGRESS, and so do all later calls of these kinds until the late one has
// ended: the thread makes one call at a time and queues none behind a call that is stuck.
//
//   GPU's thread   write() --> [call] --> worker: HostSysfs::write() ... the kernel sleeps
//                  limit over: EINPROGRESS; pending() names it; other files can be read
#pragma once

#include "daemon/backend/sriov/sysfs.h"

#include <chrono>
#include <functional>
#include <memory>

namespace vgpu::daemon::sriov {

class BoundedSysfs final : public Sysfs {
public:
    using Milliseconds = std::chrono::milliseconds;
    /// Enabling 63 VFs takes seconds, disabling them at least one second. A request to vgpud waits
    /// at most 15 s for the GPU (docs/dbus-api.md).
    static constexpr Milliseconds kLimit{8000};

    explicit BoundedSysfs(std::shared_ptr<Sysfs> files, Milliseconds limit = kLimit);
    /// Never waits: the thread and `files` stay until the kernel has finished the call under way.
    ~BoundedSysfs() override;
    BoundedSysfs(const BoundedSysfs&) = delete;
    BoundedSysfs& operator=(const BoundedSysfs&) = delete;

    SysfsResult<std::string> read(const std::string& path) override { return files_->read(path); }
    SysfsResult<std::string> read_slow(const std::string& path) override;
    SysfsResult<> write(const std::string& path, std::string_view text) override;
    SysfsResult<std::vector<std::string>> list(const std::string& path) override {
        return files_->list(path);
    }
    SysfsResult<std::string> link(const std::string& path) override { return files_->link(path); }
    std::optional<unsigned> mode(const std::string& path) override { return files_->mode(path); }

    /// "write '0' to …"
    [[nodiscard]] std::string pending() const override;
    /// The call under way and all later ones end with EINPROGRESS.
    void interrupt() override;

private:
    struct Worker;
    /// The answer of `call`, or EINPROGRESS with the description `what`.
    SysfsResult<std::string> run(std::function<SysfsResult<std::string>(Sysfs&)> call,
                                 std::string what, SysfsError late);

    std::shared_ptr<Sysfs> files_;
    const Milliseconds limit_;
    std::shared_ptr<Worker> worker_;
};

}  // namespace vgpu::daemon::sriov
