// SPDX-License-Identifier: MIT
//
// PfPort: the PF core of one GPU. Each method is one operation of the uapi
// (pf-driver/uapi/vgpu_pf.h) with a time limit. Errors: PfLost (no answer, connection closed: call
// connect() again), VersionMismatch, PfRefused (errno and the core's text). One thread, except for
// interrupt(). Implemented by adapters/uapi_client.
#pragma once

#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"
#include "pf-driver/uapi/vgpu_pf.h"

#include <memory>

namespace vgpu::daemon {

/// Units and ranges: vgpu_pf.h. A call with the generation of an earlier VF gets PfRefused;
/// generation 0 matches any VF.
class PfPort {
public:
    virtual ~PfPort() = default;

    /// Opens the connection, after closing an old one, and checks that the versions agree.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// Readable or hung up when the PF core closes the connection; -1 if not connected.
    [[nodiscard]] virtual int connection_fd() const = 0;

    /// The answer has `total_vfs` ≤ VGPU_PF_MAX_VFS and a terminated `name`.
    virtual Result<vgpu_pf_info> get_info() = 0;
    virtual Result<vgpu_pf_vf> get_vf(std::uint32_t vf) = 0;
    /// Gives an ABSENT VF all its resources, or none; returns vf and generation in the struct.
    virtual Result<vgpu_pf_provision> provision(const vgpu_pf_provision& wanted) = 0;
    /// Takes the VF off the engine and starts its scrub; the event SCRUBBED reports its end. The VF
    /// is SCRUBBING, and its VRAM reserved, until scrub_durable().
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Allows reuse of the VRAM. Call only after the end of the scrub is on disk.
    virtual Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Succeeds if the VRAM of a SCRUBBING VF is zero. Used when the event SCRUBBED may have been
    /// missed.
    virtual Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Pause, resume, stop, reset. Returns when the VF has left the engine.
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) = 0;
    /// Requires `table.generation` = generation in force + 1, so that outdated plans are refused.
    /// PfRefused while another client has the lease.
    virtual Result<> set_run_table(const vgpu_pf_run_table& table) = 0;
    virtual Result<vgpu_pf_run_table> get_run_table() = 0;
    /// Only this connection may then set policy, until it closes. PfRefused if another connection
    /// has the lease.
    virtual Result<> acquire_lease() = 0;
    /// Writes a diagnostic report to `fd`, which the caller keeps.
    virtual Result<> dump(int fd) = 0;
    /// Opens the event ring at its end. Repeat after each connect().
    virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Fails the running operation and all later ones. From any thread.
    virtual void interrupt() = 0;
};

}  // namespace vgpu::daemon
