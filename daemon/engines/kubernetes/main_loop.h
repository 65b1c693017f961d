// SPDX-License-Identifier: MIT
//
// MainLoop: the main loop of vgpu-dra. It calls the function `pass`, which reports the VFs of this
// host to Kubernetes:
//
//   a change in vgpud -------------------> pass(Changes)
//   start, resync(), or kResync after the last pass(Everything)
//     -----------------------------------> pass(Everything): in the mode dra also checks the claims
//                                          and the published ResourceSlices
//   pass fails --------------------------> the same pass after 1 s, 2 s, 4 s, … kMaxRetry, or at
//                                          the next change
//   no connection to the bus ------------> pass(Changes) after the same delays
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

/// What a pass does: report changes of the VFs, or also check everything that Kubernetes has.
enum class Extent { Changes, Everything };

class MainLoop {
public:
    /// Longest time between two calls of pass(Everything), however often the VFs change.
    static constexpr std::chrono::minutes kResync{10};
    /// The first delay before a pass is repeated after a failure, and the longest delay.
    static constexpr std::chrono::seconds kMinRetry{1}, kMaxRetry{30};

    /// Runs in the thread of run().
    using Pass = std::function<Result<>(Extent)>;

    MainLoop(VgpudWatch& watch, Pass pass) : watch_(watch), pass_(std::move(pass)) {}

    /// Runs until stop().
    void run();
    /// Requests pass(Everything). Any thread may call resync().
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
