// SPDX-License-Identifier: MIT
//
// Companions: the softgpu and the vgpu-pf of one GPU that vgpud starts itself. Running ones are
// adopted (they outlive vgpud); missing ones are started in order, vgpu-pf once softgpu's PF socket
// is there; those that die later are started again only when supervising, with a growing delay. One
// that cannot be run, or that ends at once, has failed, until one has run for a while. step() never
// blocks. One thread; owned by GpuModel.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/process_port.h"
#include "daemon/service/config/config.h"

#include <array>
#include <optional>
#include <string>

namespace vgpu::daemon {

enum class Supervision { Off, On };

/// Where everything of one GPU is, for both kinds of GPU.
struct GpuPaths {
    std::string directory;  ///< of a softgpu of ours; empty for an attached GPU
    std::string uapi_socket;
    std::string vf_socket_dir;  ///< empty: not known
};

/// Pure: nothing is made or looked at.
GpuPaths paths_of(const Config& config, const GpuConfig& gpu);

/// A process that this vgpud or one before it has started is known by its note; one that somebody
/// else started is not, and its socket would be taken for stale.
class Companions {
public:
    /// Between two starts of a program that keeps dying, doubled in between. One that has run for
    /// longer than kLongestDelay begins with the first again.
    static constexpr Nanoseconds kFirstDelay = std::chrono::milliseconds(100);
    static constexpr Nanoseconds kLongestDelay = std::chrono::seconds(5);
    /// A program that ends sooner has failed to start.
    static constexpr Nanoseconds kSettled = std::chrono::seconds(1);
    /// Between two looks while one of them is missing, and while both run.
    static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(20);
    static constexpr Nanoseconds kWatchInterval = std::chrono::milliseconds(500);

    Companions(const Config& config, const GpuConfig& gpu, ProcessPort& processes,
               Supervision supervision);

    /// Adopts, starts or restarts what is due. The words of the first failure, or "".
    std::string step(Nanoseconds now);
    /// When step() has something to do again.
    [[nodiscard]] Nanoseconds next_step(Nanoseconds now) const;

    /// One of them cannot be started, and the words of step() say why.
    [[nodiscard]] bool has_failed() const;

    /// 0 if it does not run.
    [[nodiscard]] int softgpu_pid() const { return pid_of(children_[0]); }
    [[nodiscard]] int pf_pid() const { return pid_of(children_[1]); }

private:
    /// next_try and started_at are of Clock; was_seen: it ran once, so its end is an event.
    struct Child {
        ProcessSpec spec;
        std::string socket;  ///< appears when it is ready
        std::string needs;   ///< a socket that must be there before it starts; may be empty
        std::optional<ProcessId> id;
        bool was_seen = false;
        Nanoseconds delay = kFirstDelay;
        Nanoseconds next_try{0};
        Nanoseconds started_at{0};
        std::string failure{};  ///< why it could not be started; empty: it could
    };

    static int pid_of(const Child& child) { return child.id ? child.id->pid : 0; }
    std::string step(Child& child, Nanoseconds now);
    std::string note_end(Child& child, const std::string& how, Nanoseconds now);
    std::string start(Child& child, Nanoseconds now);

    ProcessPort& processes_;
    Supervision supervision_;
    std::array<Child, 2> children_;
};

}  // namespace vgpu::daemon
