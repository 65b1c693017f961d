// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/bounded_sysfs.h"

#include <fmt/format.h>
#include <signal.h>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace vgpu::daemon::sriov {

/// Shared by the BoundedSysfs and its thread, because the thread may outlive the BoundedSysfs.
struct BoundedSysfs::Worker {
    std::shared_ptr<Sysfs> files;
    std::mutex mutex;
    std::condition_variable changed;
    std::function<SysfsResult<std::string>(Sysfs&)> call;  ///< requested or under way; may be null
    std::string what;                                      ///< describes `call`; empty without one
    std::optional<SysfsResult<std::string>> answer;        ///< until the caller of `call` takes it
    bool is_abandoned = false;  ///< true if the caller of `call` no longer waits
    bool is_interrupted = false;
    bool is_ending = false;

    void run() {
        // block all signals, because the main loop handles them
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [this] { return is_ending || call; });
            if (is_ending) return;
            lock.unlock();
            SysfsResult<std::string> got = call(*files);
            lock.lock();
            if (!is_abandoned) answer = std::move(got);
            call = nullptr;
            is_abandoned = false;
            what.clear();
            // without the lock: the woken caller would only wait for it
            lock.unlock();
            changed.notify_all();
            lock.lock();
        }
    }
};

BoundedSysfs::BoundedSysfs(std::shared_ptr<Sysfs> files, Milliseconds limit)
    : files_(std::move(files)), limit_(limit), worker_(std::make_shared<Worker>()) {
    worker_->files = files_;
    std::thread([worker = worker_] { worker->run(); }).detach();
}

BoundedSysfs::~BoundedSysfs() {
    const std::lock_guard lock(worker_->mutex);
    worker_->is_ending = true;
    worker_->changed.notify_all();
}

std::string BoundedSysfs::pending() const {
    const std::lock_guard lock(worker_->mutex);
    return worker_->what;
}

void BoundedSysfs::interrupt() {
    const std::lock_guard lock(worker_->mutex);
    worker_->is_interrupted = true;
    worker_->changed.notify_all();
}

SysfsResult<std::string> BoundedSysfs::run(std::function<SysfsResult<std::string>(Sysfs&)> call,
                                           std::string what, SysfsError late) {
    Worker& worker = *worker_;
    std::unique_lock lock(worker.mutex);
    if (worker.call || worker.is_interrupted) return tl::make_unexpected(std::move(late));
    worker.call = std::move(call);
    worker.what = std::move(what);
    lock.unlock();
    worker.changed.notify_all();
    lock.lock();
    worker.changed.wait_for(lock, limit_,
                            [&] { return worker.answer.has_value() || worker.is_interrupted; });
    if (worker.answer) {
        SysfsResult<std::string> answer = *std::move(worker.answer);
        worker.answer.reset();
        return answer;
    }
    worker.is_abandoned = true;
    return tl::make_unexpected(std::move(late));
}

SysfsResult<std::string> BoundedSysfs::read_slow(const std::string& path) {
    return run([path](Sysfs& files) { return files.read(path); }, "read " + path,
               cannot_read(path, EINPROGRESS).value());
}

SysfsResult<> BoundedSysfs::write(const std::string& path, std::string_view text) {
    const auto call = [path, text = std::string(text)](Sysfs& files) -> SysfsResult<std::string> {
        if (auto done = files.write(path, text); !done) return tl::make_unexpected(done.error());
        return std::string();
    };
    auto done = run(call, fmt::format("write '{}' to {}", text, path),
                    cannot_write(path, text, EINPROGRESS).value());
    if (!done) return tl::make_unexpected(std::move(done).error());
    return {};
}

}  // namespace vgpu::daemon::sriov
