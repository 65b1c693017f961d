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

class PfPort {
public:
    virtual ~PfPort() = default;

    /// Opens the connection (closing an old one) and checks that the versions agree.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// Readable or hung up when the PF core closes the connection; -1 if not connected.
    [[nodiscard]] virtual int connection_fd() const = 0;

    virtual Result<vgpu_pf_info> get_info() = 0;
    virtual Result<vgpu_pf_vf> get_vf(std::uint32_t vf) = 0;
    /// Returns the struct with its out members (vf, generation) filled in.
    virtual Result<vgpu_pf_provision> provision(const vgpu_pf_provision& wanted) = 0;
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    virtual Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) = 0;
    virtual Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) = 0;
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action) = 0;
    virtual Result<> set_run_table(const vgpu_pf_run_table& table) = 0;
    virtual Result<vgpu_pf_run_table> get_run_table() = 0;
    virtual Result<> acquire_lease() = 0;
    /// Writes the core's bug report into `fd`, which the caller keeps.
    virtual Result<> dump(int fd) = 0;
    virtual Result<std::unique_ptr<EventPort>> open_events() = 0;
    /// Any thread: the operation under way, and all that follow, fail at once.
    virtual void interrupt() = 0;
};

}  // namespace vgpu::daemon
