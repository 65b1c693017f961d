// SPDX-License-Identifier: MIT
//
// BoundedSysfs: gives every write, and every read that may wait for a lock, a time limit. Writing 0
// to sriov_numvfs sleeps in the kernel, beyond the reach of signals, until the last user of a VF
// closes the VF (drivers/pci/iov.c, vfio). So a detached thread makes the calls with a time limit,
// one at a time. If a call is late, its caller gets EINPROGRESS. Until the late call has ended,
// later calls with a time limit get EINPROGRESS at once, because nothing may queue behind a call
// that is stuck.
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

    /// Names the call of the thread, such as "write '0' to …"; empty if there is none.
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
