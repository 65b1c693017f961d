// SPDX-License-Identifier: MIT
//
// Backend: the interface to the driver of one GPU. GpuModel keeps records, owners and plans for
// every GPU alike, and calls its backend to read facts and to make changes. One backend is for
// our PF core (adapters/uapi_client, pf_core.h). The other backends drive a vendor's PF driver.
//
// A backend must provide connect(), disconnect(), is_connected(), connection_fd(), get_info(),
// get_vf(), provision(), release(), scrub_durable() and verify_zero(). The defaults of the other
// functions do nothing or answer NotOffered. The abilities (GpuFacts::abilities) say which changes
// the driver can make; GpuModel requests only these. Requests are structs of the uapi
// (pf-driver/uapi/vgpu_pf.h), facts are structs of facts.h.
//
// Errors of all functions: PfLost (there is no answer, or the connection is closed; call connect()
// again), VersionMismatch, and PfRefused (errno and the driver's text). Doc comments name further
// errors. All calls except interrupt() come from the GPU's thread, and may block as long as the
// driver does. Any thread may call interrupt().
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

/// The VRAM of a VF that does not exist yet.
struct VfSize {
    std::uint32_t vf = 0;
    std::uint64_t vram_bytes = 0;  ///< 0: the driver decides

    bool operator==(const VfSize&) const = default;
};

/// What another program has changed.
enum class NoticeKind {
    DriverChanged,   ///< a value of the driver
    VfCountChanged,  ///< the number of VFs
};

/// Something that happened to a GPU outside of vgpud, for administrators.
struct BackendNotice {
    std::uint32_t vf = 0;  ///< 0: the GPU
    NoticeKind kind{};
    std::string text;

    bool operator==(const BackendNotice&) const = default;
};

/// vgpu_pf.h defines units and ranges. A call with the generation of an earlier VF gets PfRefused;
/// generation 0 matches any VF.
class Backend {
public:
    virtual ~Backend() = default;

    /// Closes an old connection and opens a new one. Checks the uapi version of our PF core, or the
    /// card and driver of a vendor. Writes nothing to the GPU.
    virtual Result<> connect() = 0;
    virtual void disconnect() = 0;
    [[nodiscard]] virtual bool is_connected() const = 0;
    /// A descriptor that is readable or hung up when there are messages, or when the driver closes
    /// the connection. -1 if there is none; GpuModel then notices changes only when it reads the
    /// state, once a second.
    [[nodiscard]] virtual int connection_fd() const = 0;

    /// Reads the messages that connection_fd() signals. True if GPU and VFs must be read again.
    /// Closes the connection if the driver was replaced or loaded again.
    virtual bool take_changes();
    /// The notices since the last call, oldest first.
    virtual std::vector<BackendNotice> take_notices();

    virtual Result<GpuFacts> get_info() = 0;
    virtual Result<VfFacts> get_vf(std::uint32_t vf) = 0;
    /// Gives an ABSENT VF its resources, all or none. Values are absolute. After a restart of vgpud
    /// a vendor's driver may already have the VF with these resources. The backend then takes the
    /// VF over, and changes nothing if the VF has a user. Our PF core refuses a VF that is not
    /// ABSENT. If the VF's number is above enabled_vfs, the backend first enables all VFs up to
    /// this number, as enable_vfs() does.
    virtual Result<> provision(const vgpu_pf_provision& requested) = 0;
    /// Enables VFs 1 to `count`, for a driver that changes their number only while all VFs are idle
    /// (Change::Vfs). Disables all VFs first: VFs in service keep their resources, but lose the
    /// content of their VRAM. `sizes`: VRAM of the VFs that provision() is about to make. VfsInUse
    /// before the first write if a VF is in use. Succeeds at once if `count` or more VFs exist.
    virtual Result<> enable_vfs(std::uint32_t count, std::span<const VfSize> sizes);
    /// Takes the VF from its client and starts the scrub. The VF is SCRUBBING and keeps its
    /// resources until scrub_durable(). The event SCRUBBED reports the end of the scrub. Without
    /// events, the scrub is over when release() returns, and verify_zero() succeeds.
    virtual Result<> release(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Allows reuse of the resources: the VF becomes ABSENT. Call only after the end of the scrub
    /// is on disk.
    virtual Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) = 0;
    /// Succeeds if the VRAM of a SCRUBBING VF is zero. GpuModel calls verify_zero() if it may have
    /// missed the event SCRUBBED, or if the driver reports no events.
    virtual Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) = 0;

    /// Pauses, stops, resets or resumes a VF (Change::Pause, Stop, Reset). After a pause, stop or
    /// reset, returns when the VF has left the engine.
    virtual Result<> control(std::uint32_t vf, std::uint32_t generation,
                             vgpu_pf_control_action action);
    /// Sets weights, quanta and preempt timeouts of all VFs in service, for a driver without run
    /// tables. GpuModel calls set_shares() after each change and each connect(). The backend writes
    /// only the values that differ.
    virtual Result<> set_shares(std::span<const VfShare> vfs);

    /// Installs a run table (has_run_tables). `table.generation` must be the generation in force +
    /// 1, so that outdated plans are refused. PfRefused while another client has the lease.
    virtual Result<> set_run_table(const vgpu_pf_run_table& table);
    virtual Result<vgpu_pf_run_table> get_run_table();
    /// Afterwards only this connection may change the GPU, until the connection closes. PfRefused
    /// if another connection has the lease. Succeeds if the driver has no leases.
    virtual Result<> acquire_lease();
    /// Writes a diagnostic report to `fd`, which the caller keeps.
    virtual Result<> dump(int fd);
    /// Opens the event ring at its end; null if the driver reports no events. Call open_events()
    /// again after each connect().
    virtual Result<std::unique_ptr<EventPort>> open_events();
    /// Makes the running operation and all later ones fail, if the driver allows that.
    virtual void interrupt();
};

}  // namespace vgpu::daemon
