// SPDX-License-Identifier: MIT
//
// Backend: the interface to the driver of one GPU. GpuModel (service/gpu/gpu.h) keeps records,
// owners and plans for every GPU alike, and calls its backend to read facts and to make changes.
// One backend is for our PF core (adapters/uapi_client, pf_core.h). The other backends control a
// vendor's PF driver.
//
// A backend must provide connect(), disconnect(), is_connected(), connection_fd(), get_info(),
// get_vf(), provision(), release(), confirm_scrub() and check_scrubbed(). The defaults of the other
// functions do nothing or answer NotOffered. The abilities (GpuFacts::abilities) say which changes
// the driver can make; GpuModel requests only these. Most requests are structs of the uapi
// (pf-driver/uapi/vgpu_pf.h); facts are structs of facts.h.
//
// Common errors: PfLost (there is no answer, or the connection is closed; call connect() again),
// PfRefused (errno and the driver's text), and, from connect(), VersionMismatch. The backend for a
// vendor's driver also returns DriverBusy while the kernel has not finished an earlier read or
// write of a sysfs file. All calls except interrupt() come from the GPU's thread, and may block for
// seconds. Any thread may call interrupt().
#pragma once

#include "daemon/backend/facts.h"
#include "daemon/backend/quanta.h"
#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// The VRAM that a VF should have.
struct VfSize {
    std::uint32_t vf = 0;
    std::uint64_t vram_bytes = 0;  ///< 0: the driver decides

    bool operator==(const VfSize&) const = default;
};

/// What the notice reports.
enum class NoticeKind {
    /// Another program changed a value of the driver. Also used if the busy times of VFs cannot be
    /// read.
    DriverChanged,
    VfCountChanged,  ///< another program changed the number of VFs
};

/// Something that happened to a GPU outside of vgpud, for administrators.
struct BackendNotice {
    std::uint32_t vf = 0;  ///< 0: the GPU or the PF
    NoticeKind kind{};
    std::string text;

    bool operator==(const BackendNotice&) const = default;
};

/// vgpu_pf.h defines units and ranges. A VF gets a new generation each time it is provisioned. A
/// call with an older generation of the VF gets PfRefused; generation 0 matches every generation.
class Backend {
public:
    virtual ~Backend() = default;

    /// Closes an old connection and opens a new one. Checks the uapi version of our PF core, or the
    /// card and driver of a vendor. Writes nothing to the GPU.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// A descriptor that is readable or hung up when there are messages, or when the driver closes
    /// the connection. -1 if there is none; GpuModel then learns of changes only from the event
    /// ring, and when it reads the state, once a second.
    [[nodiscard]] virtual int connection_fd() const = 0;

    /// Reads the messages that connection_fd() signals. True if GPU and VFs must be read again.
    /// Closes the connection if the driver was replaced or loaded again.
    virtual bool take_changes();
    /// The notices since the last call, oldest first.
    virtual std::vector<BackendNotice> take_notices();

    /// The current values of the GPU.
    virtual Result<GpuFacts> get_info() = 0;
    /// The current values of VF `vf` (from 1); the state is ABSENT if the VF is not provisioned.
    virtual Result<VfFacts> get_vf(std::uint32_t vf) = 0;
    /// Gives an ABSENT VF its resources, all or none. Our PF core refuses a VF that is not ABSENT.
    /// With a vendor's driver, the VF may already exist, for example after a restart of vgpud. The
    /// backend then takes the VF over, and changes its resources only if they differ (VfsInUse if
    /// the VF is in use). If the VF's number is above GpuFacts::enabled_vfs, the backend first
    /// enables all VFs up to this number, as enable_vfs() does. NoFreeVf if a vendor's device has
    /// no such VF.
    virtual Result<> provision(const vgpu_pf_provision& requested) = 0;
    /// Enables at least the VFs 1 to `count`, for a driver that changes their number only while all
    /// VFs are idle (Change::Vfs). Does nothing if at least `count` VFs exist. Fails with VfsInUse
    /// if a client or a driver of the host uses a VF; all VFs then stay enabled. Else disables all
    /// VFs first: provisioned VFs get their resources again, but lose the content of their VRAM.
    /// After another error, VFs may be missing. `sizes`: the VRAM of the VFs that provision() is
    /// about to make.
    virtual Result<> enable_vfs(std::uint32_t count, std::span<const VfSize> sizes);
    /// Ends the use of the VF and starts the scrub. Our PF core takes the VF from its client; the
    /// backend for a vendor's driver fails with VfsInUse if a VM has the VF open. The VF is
    /// SCRUBBING until confirm_scrub(). The event SCRUBBED reports the end of the scrub. If the
    /// driver reports no events, the scrub is over when release() returns.
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Allows reuse of the resources: the VF becomes ABSENT. Call only after GpuModel has written
    /// to disk that the scrub has ended.
    virtual Result<> confirm_scrub(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Scrubs a VF that get_vf() reports as ABSENT, but that may hold data and resources of its
    /// last user. This can happen with a vendor's driver, because its backend reports every VF as
    /// ABSENT from connect() until provision(). With our PF core, does nothing. VfsInUse if a VM
    /// has the VF open. If `vf.vram_bytes` is not 0, also frees the VF's VRAM, if the driver can.
    virtual Result<> scrub_absent(const VfSize& vf);
    /// Succeeds if the scrub of a SCRUBBING VF is over. Our PF core reads the VRAM to check that it
    /// is zero; the backend for a vendor's driver does not. GpuModel calls check_scrubbed() if it
    /// may have missed the event SCRUBBED, or if the driver reports no events.
    virtual Result<> check_scrubbed(std::uint32_t vf, std::uint32_t generation) = 0;

    /// Pauses, stops, resets or resumes a VF, or ends its quarantine (Change::Pause, Stop, Reset).
    /// Our PF core answers a pause, stop or reset when the VF has left the engine.
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action);
    /// Sets weights, quanta and preempt time-outs of all VFs that may run, for a driver without run
    /// tables. GpuModel calls set_shares() after each change of these values or of the VFs, and
    /// after each connect(). The backend writes only the values that differ.
    virtual Result<> set_shares(std::span<const VfShare> vfs);

    /// Installs a run table (Abilities::has_run_tables). `table.generation` must be 1 + the
    /// generation of the newest run table, so that the PF core refuses outdated plans. PfRefused
    /// while another client has the lease.
    virtual Result<> set_run_table(const vgpu_pf_run_table& table);
    /// The newest run table.
    virtual Result<vgpu_pf_run_table> get_run_table();
    /// Takes the lease: until this connection closes, only this connection may set the run table.
    /// PfRefused if another connection has the lease. Succeeds if the driver has no leases.
    virtual Result<> acquire_lease();
    /// Writes a diagnostic report to `fd`, which the caller must close.
    virtual Result<> dump(int fd);
    /// Opens the event ring at its end; null if the driver reports no events. Call open_events()
    /// again after each connect().
    virtual Result<std::unique_ptr<EventPort>> open_events();
    /// Makes the running operation and later ones fail, as far as they wait for the driver.
    virtual void interrupt();
};

}  // namespace vgpu::daemon
