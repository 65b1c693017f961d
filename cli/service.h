// SPDX-License-Identifier: MIT
//
// Service: the interface org.vgpu1 in plain values, for the verbs. Implemented by BusService and by
// fakes in tests. Failures are ServiceErrors. Runs in one thread.
#pragma once

#include "daemon/exporter/values.h"

#include <poll.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::cli {

using exporter::Properties;
using exporter::Value;
using exporter::Words;
/// Options of a method (a{sv}); their names are in docs/dbus-api.md.
using Options = std::map<std::string, Value>;

/// See docs/dbus-api.md. Usage: the command line is wrong; nothing was done. NotFound: no such GPU,
/// VF or label. Unreachable: no bus, no vgpud or no answer (vgpud may still act). NoCapacity: no
/// free or matching VF, or too little VRAM, doorbells, compute units or engine time, or a change
/// that the driver does not offer. Lost: the GPU or PF core is gone. ReadOnly: the durable state is
/// not trusted or not writable.
enum class ExitCode : int {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    NotAuthorized = 4,
    Unreachable = 5,
    NoCapacity = 6,
    Lost = 7,
    ReadOnly = 8,
    Interrupted = 130,  ///< the wait for a job; also a shell's code for SIGINT
};

/// Thrown by all calls and by verbs. Its name determines the exit code. what(): the message and,
/// for general bus errors (no such object or method), their meaning.
class ServiceError : public std::runtime_error {
public:
    ServiceError(std::string name, const std::string& message);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Failed for an unknown name.
    [[nodiscard]] ExitCode exit_code() const;

private:
    std::string name_;
};

/// The result of Gpu.GetRunTable, in table order. VF numbers begin at 1.
struct RunTable {
    struct Slice {
        std::uint32_t vf = 0;
        std::uint32_t quantum_us = 0;
    };
    std::vector<Slice> slices;
    std::uint64_t generation = 0;
};

/// The result of Gpu.ReadTrace. `next`: position to continue from. `is_late`: true if earlier items
/// were dropped.
struct TracePiece {
    std::string items;  ///< a CBOR sequence
    std::uint64_t next = 0;
    bool is_late = false;
};

/// Limit for limit_calls() in doctor and report, which are often run while vgpud has a fault.
inline constexpr std::chrono::seconds kServiceTimeout{10};

/// Event: vgpud has a new event. Gone: vgpud has left the bus. Back: a vgpud, perhaps a new
/// process, owns the name org.vgpu1. Stopped: a descriptor of `stop_on` is ready.
enum class BusChange { Event, Gone, Back, Stopped };

/// The methods of org.vgpu1.Vf with the same names.
enum class VfAction { Pause, Stop };
/// The methods of org.vgpu1.Vf that begin a job.
enum class VfJob { Destroy, Reset, Resume, ClearQuarantine, SelfTest, Quiesce, Thaw };

/// "gpu0/vf3" for "/org/vgpu1/gpu/gpu0/vf/3", "gpu0" for the path of a GPU.
std::string target_of_path(const std::string& path);

/// All calls block until the answer or the limit, and throw ServiceError. Paths are D-Bus object
/// paths, which are valid while the object exists.
class Service {
public:
    virtual ~Service() = default;

    /// The properties of org.vgpu1.Manager: Version, ApiVersion, ReadOnly, StateMessage …
    virtual Properties manager() = 0;
    /// One element per object, with "Path" and "Target". `names`: read only these properties
    /// (separated by commas; "": all). `max_age_ms`: allowed age of values; 0: read them now.
    virtual std::vector<Properties> list_gpus_with(const std::string& names,
                                                   std::uint32_t max_age_ms) = 0;
    virtual std::vector<Properties> list_vfs_with(const std::string& names,
                                                  std::uint32_t max_age_ms) = 0;
    /// For each profile on each GPU: Gpu, GpuState, Profile, Total, Free, Claimed, Unavailable.
    virtual std::vector<Properties> capacity() = 0;
    std::vector<Properties> list_gpus() { return list_gpus_with({}, 0); }
    std::vector<Properties> list_vfs() { return list_vfs_with({}, 0); }
    /// The properties of a GPU or VF, with Path and Target. NotFound.
    virtual Properties object(const std::string& path) = 0;
    /// `target`: "gpu0", "gpu0/vf3", a VF's name or UUID. NotFound.
    virtual std::string resolve(const std::string& target) = 0;
    /// Creates a VF and returns its path. `gpu`: "": vgpud chooses.
    virtual std::string create_vf(const std::string& gpu, const Options& options) = 0;
    virtual void set_gpu(const std::string& path, const Options& options) = 0;
    /// Takes effect with the next run table.
    virtual void set_vf(const std::string& path, const Options& options) = 0;
    /// Returns the claim's generation. `owner`: printable ASCII, 1 to 128 characters.
    virtual std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                                   const Options& options) = 0;
    /// `generation`: from claim_vf(). Later claims stay.
    virtual void release_vf(const std::string& path, const std::string& owner,
                            std::uint64_t generation, const Options& options) = 0;
    /// Assigns all VFs or none, each requested by "name" or "profile". Returns Target, Path,
    /// Generation and Socket of each. Options: owner_name, wait_ms (for VFs being scrubbed).
    /// NoCapacity.
    virtual std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& selectors,
        const Options& options) = 0;
    virtual void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Scrubs all VFs of `owner`, ends their claims except persistent ones, and returns the number
    /// of VFs.
    virtual std::uint64_t unassign_vfs(const std::string& owner) = 0;
    /// For a running VM: restores lost claims, and returns its number of VFs.
    virtual std::uint64_t adopt_vfs(const std::string& owner, const Options& options) = 0;
    /// Lowers the limit of further calls and of await_job(). A call that exceeds it
    /// throws Unreachable, and vgpud may still act.
    virtual void limit_calls(std::chrono::milliseconds limit) = 0;
    /// A VF that is open may require "force".
    virtual void control(const std::string& path, VfAction action, const Options& options) = 0;
    /// Returns the path of the job. A VF that is open or claimed may require "force".
    virtual std::string start_job(const std::string& path, VfJob job, const Options& options) = 0;

    /// Of the events that vgpud keeps, the newest `limit` with Seq > `after`: Seq, TimeUs, Gpu, Vf,
    /// Kind, Text.
    virtual std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) = 0;
    /// Waits for events, for the end or start of vgpud, or for `stop_on`. One result may stand for
    /// several events.
    virtual BusChange wait_for_change(const std::vector<pollfd>& stop_on) = 0;
    /// The JSON of Manager.Plan for the text of a configuration. Changes nothing.
    virtual std::string plan(const std::string& config, const Options& options) = 0;
    /// Returns the path of the accepted job, which continues without its caller.
    virtual std::string apply(const std::string& config, const Options& options) = 0;
    /// The configuration of the present VFs as JSON. auto_config(): a configuration with a label
    /// for each equal split. Neither changes anything.
    virtual std::string export_config(const Options& options) = 0;
    virtual std::string auto_config(const Options& options) = 0;
    /// Waits until a job has ended or `is_enough` returns true, and returns the last properties.
    /// Calls `is_enough` each time it has read them. A job that failed does not throw: see State,
    /// Error, ErrorName. Returns nothing if one of `stop_on` is ready first.
    virtual std::optional<Properties> await_job(
        const std::string& path, const std::function<bool(const Properties&)>& is_enough,
        const std::vector<pollfd>& stop_on) = 0;
    /// All jobs by number: Path and all properties except Plan.
    virtual std::vector<Properties> list_jobs() = 0;
    /// Requests that the job end after its current step. WrongState (Failed) if it is over or
    /// cannot be cancelled.
    virtual void cancel_job(const std::string& path) = 0;

    /// OpenMetrics text.
    virtual std::string metrics() = 0;
    virtual RunTable run_table(const std::string& gpu_path) = 0;
    /// Reads the recorded schedule from the position `after` on; 0: from the start. OutOfRange if
    /// `after` comes from an earlier vgpud.
    virtual TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) = 0;
    /// The PF core's bug report, cut at 16 MiB. Requires the right to control VFs.
    virtual std::string dump(const std::string& gpu_path) = 0;
};

/// `bus`: "system", "session" or an address. Unreachable if there is no such bus. Does not contact
/// vgpud.
std::unique_ptr<Service> connect_service(const std::string& bus);

}  // namespace vgpu::cli
