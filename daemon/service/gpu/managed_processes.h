// SPDX-License-Identifier: MIT
//
// Managed processes: the softgpu and vgpu-pf processes that vgpud starts for one GPU. Running ones
// are adopted (they outlive vgpud). Missing ones are started in order: vgpu-pf needs softgpu's PF
// socket. Processes that die later are restarted only with Supervision::On, after a growing delay.
// A process that cannot run, or ends at once, counts as failed until it runs for a while. step()
// does not wait until a process is ready. Owned by GpuModel; one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/process_port.h"
#include "daemon/service/config/config.h"

#include <array>
#include <optional>
#include <string>

namespace vgpu::daemon {

enum class Supervision { Off, On };

struct GpuPaths {
    std::string directory;  ///< of a softgpu that vgpud starts; empty for an attached GPU
    std::string uapi_socket;
    std::string vf_socket_dir;  ///< empty: not known
};

/// Paths of a GPU from the configuration. Pure: does not touch the file system.
GpuPaths paths_of(const Config& config, const GpuConfig& gpu);

/// Recognises its processes by the pid files that this vgpud or an earlier one wrote. A process
/// without a pid file would be started twice: its socket file would be taken for stale and removed.
class ManagedProcesses {
public:
    /// Delay between two starts of a program that keeps dying. Doubles each time, and is reset
    /// after a run longer than kLongestDelay.
    static constexpr Nanoseconds kFirstDelay = std::chrono::milliseconds(100);
    static constexpr Nanoseconds kLongestDelay = std::chrono::seconds(5);
    /// A program that ends sooner than this has failed to start.
    static constexpr Nanoseconds kSettled = std::chrono::seconds(1);
    /// Time between two checks while a process is missing, and while both run.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);
    static constexpr Nanoseconds kWatchInterval = std::chrono::milliseconds(500);

    ManagedProcesses(const Config& config, const GpuConfig& gpu, ProcessPort& processes,
                     Supervision supervision);

    /// Adopts, starts or restarts as needed; returns the text of the first failure, or "".
    std::string step(Nanoseconds now);
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const;

    /// True if a process cannot be started or ended within kSettled; step() returns why.
    [[nodiscard]] bool has_failed() const;

    /// 0 if the process does not run.
    [[nodiscard]] int softgpu_pid() const { return pid_of(children_[0]); }
    [[nodiscard]] int pf_pid() const { return pid_of(children_[1]); }

private:
    /// was_seen: the process has run, so without supervision it is not started again.
    struct Child {
        ProcessSpec spec;
        std::string socket;  ///< appears when the process is ready
        std::string needs;   ///< a socket that must exist before the start; may be empty
        std::optional<ProcessId> id;
        bool was_seen = false;
        Nanoseconds delay = kFirstDelay;
        Nanoseconds next_try{0};
        Nanoseconds started_at{0};
        std::string failure{};  ///< why the start failed; empty if it did not
    };

    static int pid_of(const Child& child) { return child.id ? child.id->pid : 0; }
    std::string step(Child& child, Nanoseconds now);
    std::string record_end(Child& child, const std::string& how, Nanoseconds now);
    std::string start(Child& child, Nanoseconds now);

    ProcessPort& processes_;
    Supervision supervision_;
    std::array<Child, 2> children_;
};

}  // namespace vgpu::daemon
