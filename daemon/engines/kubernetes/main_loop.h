// SPDX-License-Identifier: MIT
//
// MainLoop: the main thread of vgpu-dra. It calls `pass`, a function that brings Kubernetes up to
// date:
//
//   change of vgpud ----------------> pass(changes)
//   resync(), kResync, start -------> pass(everything): in mode dra also reads claims and slices
//   failure ------------------------> the same pass after 1 s, 2 s, … kMaxRetry
#pragma once

#include "daemon/adapters/wakeup.h"
#include "daemon/engines/kubernetes/vgpud_client.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

namespace vgpu::kubernetes {

/// Writes one line to the log.
void log_line(const std::string& line);

/// What a pass brings up to date: the changes that vgpud reported, or everything.
enum class Extent { Changes, Everything };

class MainLoop {
public:
    /// After this time without a change, a pass brings everything up to date.
    static constexpr std::chrono::minutes kResync{10};
    /// The first delay before a pass is repeated after a failure, and the longest delay.
    static constexpr std::chrono::seconds kMinRetry{1}, kMaxRetry{30};

    using Pass = std::function<Result<>(Extent)>;

    MainLoop(VgpudWatch& watch, Pass pass) : watch_(watch), pass_(std::move(pass)) {}

    /// Runs until stop().
    void run();
    /// Requests a pass over everything. Any thread may call resync().
    void resync();
    /// Ends run(). Any thread may call stop().
    void stop();

private:
    void log_change(const std::string& failure);

    VgpudWatch& watch_;
    Pass pass_;
    daemon::adapters::Wakeup wakeup_;
    std::atomic<bool> is_resync_wanted_ = true;
    std::atomic<bool> is_stopping_ = false;
    std::string failure_;  ///< last failure that was logged; empty after a success
};

}  // namespace vgpu::kubernetes
