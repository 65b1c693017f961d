// SPDX-License-Identifier: MIT
//
// ManagedProcesses: starts the softgpu and vgpu-pf processes of one software GPU. The processes
// outlive vgpud, and the next vgpud adopts them. softgpu starts first, because vgpu-pf needs
// softgpu's PF socket. With Supervision::On, also restarts processes that have died, after a
// growing delay. A process that cannot be started, or ends within kSettled, counts as failed until
// it runs for longer than kSettled. step() does not wait until a process is ready. Owned by
// GpuModel; one thread.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/process_port.h"
#include "daemon/service/config/config.h"

#include <array>
#include <optional>
#include <string>

namespace vgpu::daemon {

/// Whether vgpud restarts a process that has died.
enum class Supervision { Off, On };

struct GpuPaths {
    std::string directory;      ///< run directory of the managed processes; empty: none
    std::string uapi_socket;    ///< socket or device of the PF core; empty: a vendor's driver
    std::string vf_socket_dir;  ///< directory of the VFs' sockets (vf1.sock …); empty: unknown
};

/// Paths of a GPU from the configuration. Pure: does not touch the file system.
GpuPaths paths_of(const Config& config, const GpuConfig& gpu);

/// Recognises processes by the pid files that this vgpud or an earlier vgpud wrote. If a pid file
/// is missing when vgpud starts, step() takes the socket file of the running process for stale,
/// removes it, and starts a second process.
class ManagedProcesses {
public:
    /// Shortest delay between two starts of a process. Each start doubles the delay.
    static constexpr Nanoseconds kFirstDelay = std::chrono::milliseconds(100);
    /// Limit of the delay between two starts. After a run longer than this, the delay is
    /// kFirstDelay again.
    static constexpr Nanoseconds kLongestDelay = std::chrono::seconds(5);
    /// A process that ends within this time has failed to start.
    static constexpr Nanoseconds kSettled = std::chrono::seconds(1);
    /// Time between two checks while a process is missing.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);
    /// Time between two checks while both processes run.
    static constexpr Nanoseconds kWatchInterval = std::chrono::milliseconds(500);

    ManagedProcesses(const Config& config, const GpuConfig& gpu, ProcessPort& processes,
                     Supervision supervision);

    /// Adopts, starts or restarts the processes as needed. Returns a text for operators: why the
    /// first process with a problem failed or does not run. Empty if there is no problem; may also
    /// be empty while a process that ran for longer than kSettled waits for its restart.
    std::string step(Nanoseconds now);
    /// When to call step() again.
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const;

    /// True if a process counts as failed.
    [[nodiscard]] bool has_failed() const;

    /// 0 if softgpu does not run.
    [[nodiscard]] int softgpu_pid() const { return pid_of(children_[0]); }
    /// 0 if vgpu-pf does not run.
    [[nodiscard]] int pf_pid() const { return pid_of(children_[1]); }

private:
    struct Child {
        ProcessSpec spec;
        std::string socket;           ///< appears when the process is ready
        std::string needs;            ///< a socket that must exist before the start; empty: none
        std::optional<ProcessId> id;  ///< none while the process does not run
        bool was_seen = false;  ///< true if the process has run; without supervision, step() then
                                ///< does not start it again
        Nanoseconds delay = kFirstDelay;  ///< minimum time between two starts
        Nanoseconds next_try{0};          ///< earliest time of the next start
        Nanoseconds started_at{0};        ///< when step() last tried to start it, or adopted it
        std::string failure{};            ///< why the process counts as failed; empty: it does not
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
