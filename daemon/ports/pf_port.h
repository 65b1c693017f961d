// SPDX-License-Identifier: MIT
//
// The PF core of one GPU as vgpud uses it: each method is one operation of the uapi
// (pf-driver/uapi/vgpu_pf.h), bounded in time. Errors are PfLost (no answer; the connection is
// closed and connect() must be called again), VersionMismatch or PfRefused (an errno and the core's
// words). One thread owns a port; only interrupt() may be called from others. Implemented by
// adapters/uapi_client; tests implement it in memory.
#pragma once

#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <memory>

namespace vgpu::daemon {

/// Units and ranges of all members are those of vgpu_pf.h. Calls that name a generation do nothing
/// to a VF that was provisioned anew since (PfRefused); generation 0 takes whatever is there.
class PfPort {
public:
    virtual ~PfPort() = default;

    /// Opens the connection (closing an old one) and checks that the versions agree.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// Readable or hung up when the PF core closes the connection; -1 if not connected.
    [[nodiscard]] virtual int connection_fd() const = 0;

    /// `total_vfs` is at most VGPU_PF_MAX_VFS and `name` is terminated, whatever the PF core said.
    virtual Result<vgpu_pf_info> get_info() = 0;
    /// State and counters of VF `vf` (1..total_vfs).
    virtual Result<vgpu_pf_vf> get_vf(std::uint32_t vf) = 0;
    /// Returns the struct with its out members (vf, generation) filled in.
    /// All resources of an ABSENT VF, or none.
    virtual Result<vgpu_pf_provision> provision(const vgpu_pf_provision& wanted) = 0;
    /// Takes the VF out of the engine and starts its scrub; the VF is SCRUBBING, and its VRAM out
    /// of use, until scrub_durable(). The end of the scrub is the event SCRUBBED.
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    /// The VRAM may be handed out again. To be called only when the fact that it was scrubbed is on
    /// disk: a crash before that must scrub again.
    virtual Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Succeeds if the VRAM of a SCRUBBING VF reads as zeroes: how one that missed the event
    /// SCRUBBED learns that the scrub is over.
    virtual Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Pause, resume, stop, reset. Returns when it is done, which includes that a VF in the engine
    /// has left it.
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) = 0;
    /// Replaces the table in force. `table.generation` must be the one in force + 1, so that a
    /// table planned from an older one is refused. PfRefused while another client has the lease.
    virtual Result<> set_run_table(const vgpu_pf_run_table& table) = 0;
    virtual Result<vgpu_pf_run_table> get_run_table() = 0;
    /// Makes this connection the only one that sets policy; PfRefused while another client has it.
    /// Ends with the connection.
    virtual Result<> acquire_lease() = 0;
    /// Writes the core's bug report into `fd`, which the caller keeps.
    virtual Result<> dump(int fd) = 0;
    /// The ring of this connection's PF core, read from its present end on. Whoever connects again
    /// opens it again.
    virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Any thread: the operation under way, and all that follow, fail at once.
    virtual void interrupt() = 0;
};

}  // namespace vgpu::daemon
