// SPDX-License-Identifier: MIT
//
// BoundedSysfs: gives every write(), and every read that may wait for a lock (read_slow()), a time
// limit. A write of 0 to sriov_numvfs sleeps in the kernel until every VF is closed, and no signal
// ends this sleep (drivers/pci/iov.c, vfio). So a detached thread makes the calls that have a time
// limit, one at a time. If a call is late, its caller gets EINPROGRESS. Until the late call has
// ended, later calls with a time limit get EINPROGRESS at once, and do not queue behind it.
//
//   GPU's thread   write() --> [call] --> worker: HostSysfs::write() ... the kernel sleeps
//                  limit over: EINPROGRESS; pending() names the call; read() still works
#pragma once

#include "daemon/backend/sriov/sysfs.h"

#include <chrono>
#include <functional>
#include <memory>

namespace vgpu::daemon::sriov {

class BoundedSysfs final : public Sysfs {
public:
    using Milliseconds = std::chrono::milliseconds;
    /// Longer than the kernel takes to enable 63 VFs (seconds) or to disable them (at least one
    /// second), and shorter than the 15 s that a request to vgpud waits for the GPU
    /// (docs/dbus-api.md).
    static constexpr Milliseconds kLimit{8000};

    explicit BoundedSysfs(std::shared_ptr<Sysfs> files, Milliseconds limit = kLimit);
    /// Does not wait: the thread and `files` live on until the call under way has ended.
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

    /// The call under way, such as "write '0' to …"; empty if there is none.
    [[nodiscard]] std::string pending() const override;
    /// The call under way and all later calls with a time limit end with EINPROGRESS.
    void interrupt() override;

private:
    struct Worker;
    /// Lets the thread make `call`, and returns its answer. Returns `late` if the time limit ends
    /// first, if an earlier call is still under way, or after interrupt(). `what` describes the
    /// call, for pending().
    SysfsResult<std::string> run(std::function<SysfsResult<std::string>(Sysfs&)> call,
                                 std::string what, SysfsError late);

    std::shared_ptr<Sysfs> files_;
    const Milliseconds limit_;
    std::shared_ptr<Worker> worker_;
};

}  // namespace vgpu::daemon::sriov
