// SPDX-License-Identifier: MIT
//
// Managed processes: the softgpu and vgpu-pf processes that vgpud starts for one GPU. Adopts
// running processes, which outlive vgpud. Starts missing processes in order, because vgpu-pf needs
// softgpu's PF socket. With Supervision::On, also restarts processes that have died, after a
// growing delay. A process that cannot run, or ends at once, counts as failed until it runs for a
// while. step() does not wait until a process is ready. Owned by GpuModel; one thread.
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
    std::string directory;  ///< run directory of managed processes; empty if there are none
    std::string uapi_socket;
    std::string vf_socket_dir;  ///< empty: not known
};

/// Paths of a GPU from the configuration. Pure: does not touch the file system.
GpuPaths paths_of(const Config& config, const GpuConfig& gpu);

/// Recognises processes by the pid files that this vgpud or an earlier vgpud wrote. A process
/// without a pid file would be started twice: its socket file would be taken for stale and removed.
class ManagedProcesses {
public:
    /// First delay between two starts of a program that keeps dying. Doubles with each start.
    static constexpr Nanoseconds kFirstDelay = std::chrono::milliseconds(100);
    /// Limit of the delay between two starts. After a run that is longer than this limit, the delay
    /// is kFirstDelay again.
    static constexpr Nanoseconds kLongestDelay = std::chrono::seconds(5);
    /// A program that ends sooner than this has failed to start.
    static constexpr Nanoseconds kSettled = std::chrono::seconds(1);
    /// Time between two checks while a process is missing.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);
    /// Time between two checks while both processes run.
    static constexpr Nanoseconds kWatchInterval = std::chrono::milliseconds(500);

    ManagedProcesses(const Config& config, const GpuConfig& gpu, ProcessPort& processes,
                     Supervision supervision);

    /// Adopts, starts or restarts the processes as needed. Returns, as text, the first failure or
    /// the first reason why a process does not run; empty if there is none.
    std::string step(Nanoseconds now);
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const;

    /// True if a process could not be started, or ended within kSettled of its start; step()
    /// returns why.
    [[nodiscard]] bool has_failed() const;

    /// 0 if softgpu does not run.
    [[nodiscard]] int softgpu_pid() const { return pid_of(children_[0]); }
    /// 0 if vgpu-pf does not run.
    [[nodiscard]] int pf_pid() const { return pid_of(children_[1]); }

private:
    struct Child {
        ProcessSpec spec;
        std::string socket;  ///< appears when the process is ready
        std::string needs;   ///< a socket that must exist before the start; may be empty
        std::optional<ProcessId> id;
        bool was_seen = false;  ///< true if the process has run; without supervision, step() then
                                ///< does not start it again
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
