// SPDX-License-Identifier: MIT
//
// PfPort is the PF core of one GPU. Each method is one operation of the uapi
// (pf-driver/uapi/vgpu_pf.h) with a time limit. Errors are PfLost (no answer; the connection is
// closed, call connect() again), VersionMismatch or PfRefused (an errno and the core's text). One
// thread owns a port; only interrupt() may be called from others. Implemented by
// adapters/uapi_client; tests implement it in memory.
#pragma once

#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <memory>

namespace vgpu::daemon {

/// vgpu_pf.h defines units and ranges of all members. A call with a generation does nothing to a VF
/// that was provisioned again since (PfRefused); generation 0 matches any.
class PfPort {
public:
    virtual ~PfPort() = default;

    /// Opens the connection (closing an old one) and checks that the versions agree.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// Readable or hung up when the PF core closes the connection; -1 if not connected.
    [[nodiscard]] virtual int connection_fd() const = 0;

    /// Ensures `total_vfs` ≤ VGPU_PF_MAX_VFS and a terminated `name`, for any answer.
    virtual Result<vgpu_pf_info> get_info() = 0;
    /// State and counters of VF `vf` (1..total_vfs).
    virtual Result<vgpu_pf_vf> get_vf(std::uint32_t vf) = 0;
    /// Gives an ABSENT VF all its resources, or none.
    /// Returns the struct with its out members (vf, generation) filled in.
    virtual Result<vgpu_pf_provision> provision(const vgpu_pf_provision& wanted) = 0;
    /// Takes the VF off the engine and starts its scrub; the VF is SCRUBBING, and its VRAM
    /// reserved, until scrub_durable(). The event SCRUBBED reports the end of the scrub.
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Allows the VRAM to be handed out again. Call it only after the scrub is noted on disk: after
    /// an earlier crash the VRAM must be scrubbed again.
    virtual Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Succeeds if the VRAM of a SCRUBBING VF reads as zeroes. Replaces a missed event SCRUBBED.
    virtual Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Pause, resume, stop, reset. Returns when complete: the VF has left the engine.
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) = 0;
    /// Replaces the table in force. `table.generation` must be generation in force + 1, so that a
    /// table planned from an older one is refused. PfRefused while another client has the lease.
    virtual Result<> set_run_table(const vgpu_pf_run_table& table) = 0;
    virtual Result<vgpu_pf_run_table> get_run_table() = 0;
    /// Makes this connection the only one that sets policy, until it closes; PfRefused while
    /// another client has the lease.
    virtual Result<> acquire_lease() = 0;
    /// Writes the core's bug report into `fd`, which the caller keeps.
    virtual Result<> dump(int fd) = 0;
    /// Opens the PF core's event ring at its present end. Open it again after each connect().
    virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Makes the running operation and all later ones fail at once; from any thread.
    virtual void interrupt() = 0;
};

}  // namespace vgpu::daemon
