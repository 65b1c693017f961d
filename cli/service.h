// SPDX-License-Identifier: MIT
//
// Service: the D-Bus interface org.vgpu1 for the verbs, with plain values. BusService implements
// Service, and tests have fakes. Failures are ServiceErrors. Runs in one thread.
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

/// Exit codes of vgpuctl (docs/dbus-api.md).
enum class ExitCode : int {
    Ok = 0,
    Failed = 1,
    Usage = 2,     ///< the command line or a document is wrong; nothing was done
    NotFound = 3,  ///< no such GPU, VF, label or object, or an ambiguous name
    NotAuthorized = 4,
    Unreachable = 5,  ///< no bus, no vgpud or no answer; vgpud may still carry out the call
    /// There is no free or matching VF; VRAM, doorbells, compute units or engine time do not
    /// suffice; or the driver does not offer the change.
    NoCapacity = 6,
    Lost = 7,           ///< the GPU or PF core is gone
    ReadOnly = 8,       ///< the durable state is not trusted or not writable
    Interrupted = 130,  ///< a signal ended the wait for a job; a shell's code for SIGINT
};

/// The error that all calls and verbs throw. name() is a D-Bus error name, or "vgpuctl." and a
/// word, and determines the exit code. what() is the message. For a general bus error, such as "no
/// such method", the message also says what the error means for a user of vgpuctl.
class ServiceError : public std::runtime_error {
public:
    ServiceError(std::string name, const std::string& message);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// The exit code for name(); Failed for an unknown name.
    [[nodiscard]] ExitCode exit_code() const;

private:
    std::string name_;
};

/// The result of Gpu.GetRunTable, with the slices in table order. VF numbers begin at 1.
struct RunTable {
    struct Slice {
        std::uint32_t vf = 0;
        std::uint32_t quantum_us = 0;
    };
    std::vector<Slice> slices;
    std::uint64_t generation = 0;  ///< identifies this table among the GPU's tables
};

/// The result of Gpu.ReadTrace.
struct TracePiece {
    std::string items;       ///< a CBOR sequence
    std::uint64_t next = 0;  ///< position after these items, for the next call
    bool has_gap = false;    ///< true if vgpud dropped unread items that preceded `items`
};

/// Limit for limit_calls() in doctor and report, which are often run while vgpud has a fault.
inline constexpr std::chrono::seconds kServiceTimeout{10};

/// What wait_for_change() reports.
enum class BusChange {
    Event,    ///< vgpud has a new event
    Gone,     ///< vgpud has left the bus
    Back,     ///< a vgpud, perhaps a new process, owns the bus name org.vgpu1
    Stopped,  ///< a descriptor of `stop_on` is ready
};

/// Methods of org.vgpu1.Vf that answer when the change is made. The values have the methods' names.
enum class VfAction { Pause, Stop };
/// Methods of org.vgpu1.Vf that begin a job. The values have the methods' names.
enum class VfJob { Destroy, Reset, Resume, ClearQuarantine, SelfTest, Quiesce, Thaw };

/// "gpu0/vf3" for "/org/vgpu1/gpu/gpu0/vf/3", "gpu0" for the path of a GPU; other paths unchanged.
std::string target_of_path(const std::string& path);

/// Each call blocks until the answer or the time limit. wait_for_change() has no limit, and
/// await_job() has a limit only after limit_calls(). A failed call throws ServiceError. "NotFound."
/// in a comment below means that the call may throw a ServiceError with that ExitCode. Paths are
/// D-Bus object paths, which are valid while the object exists.
class Service {
public:
    virtual ~Service() = default;

    /// The properties of org.vgpu1.Manager: Version, ApiVersion, ReadOnly, StateMessage …
    virtual Properties manager() = 0;
    /// The properties of each GPU or VF, with Path and Target. `names`: the properties to return,
    /// separated by commas; "" means all. `max_age_ms`: vgpud may answer with values of up to this
    /// age (0..10000), instead of reading the GPUs again.
    virtual std::vector<Properties> list_gpus_with(const std::string& names,
                                                   std::uint32_t max_age_ms) = 0;
    virtual std::vector<Properties> list_vfs_with(const std::string& names,
                                                  std::uint32_t max_age_ms) = 0;
    /// For each profile on each GPU: Gpu, GpuState, Profile, Total, Free, Claimed, Unavailable.
    virtual std::vector<Properties> capacity() = 0;
    std::vector<Properties> list_gpus() { return list_gpus_with({}, 0); }
    std::vector<Properties> list_vfs() { return list_vfs_with({}, 0); }
    /// The properties of the GPU or VF at `path`, with Path and Target. NotFound.
    virtual Properties object(const std::string& path) = 0;
    /// The path of `target`: "gpu0", "gpu0/vf3", a VF's name or UUID. NotFound.
    virtual std::string resolve(const std::string& target) = 0;
    /// Creates a VF and returns its path. If `gpu` is "", vgpud chooses the GPU.
    virtual std::string create_vf(const std::string& gpu, const Options& options) = 0;
    /// Changes settings of a GPU (Gpu.Set).
    virtual void set_gpu(const std::string& path, const Options& options) = 0;
    /// Changes settings of a VF (Vf.Set). Weight, quantum and contract take effect with the next
    /// run table.
    virtual void set_vf(const std::string& path, const Options& options) = 0;
    /// Claims a VF and returns the claim's generation. `owner`: printable ASCII, 1 to 128
    /// characters.
    virtual std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                                   const Options& options) = 0;
    /// Ends the claim with this `generation`, which claim_vf() returned. Never ends a later claim,
    /// which has another generation.
    virtual void release_vf(const std::string& path, const std::string& owner,
                            std::uint64_t generation, const Options& options) = 0;
    /// Assigns a VF for each selector ("name" or "profile", and its value), or no VF at all.
    /// Returns Target, Path, Generation and Socket of each VF. Options: owner_name, wait_ms (how
    /// long to wait for VFs that are being scrubbed). NoCapacity.
    virtual std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& selectors,
        const Options& options) = 0;
    /// Lets a user and a group open the sockets of the owner's VFs.
    virtual void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Scrubs all VFs of `owner`, ends their claims except persistent ones, and returns the number
    /// of VFs.
    virtual std::uint64_t unassign_vfs(const std::string& owner) = 0;
    /// Claims for `owner`, a running VM, the VFs that the VM uses and that have no owner, because
    /// vgpud may have lost the VM's claims. Returns the number of VFs that the VM then has.
    virtual std::uint64_t adopt_vfs(const std::string& owner, const Options& options) = 0;
    /// Lowers the time limit of each further call and of await_job(). A call that exceeds the limit
    /// throws Unreachable, but vgpud may still carry it out.
    virtual void limit_calls(std::chrono::milliseconds limit) = 0;
    /// Pauses or stops a VF. If a client has the VF open, the option "force" is required.
    virtual void control(const std::string& path, VfAction action, const Options& options) = 0;
    /// Begins a job and returns the path of the job. If the VF is open or claimed, some jobs
    /// require the option "force".
    virtual std::string start_job(const std::string& path, VfJob job, const Options& options) = 0;

    /// The newest events that vgpud keeps, at most `limit`, with Seq > `after`. Each has Seq,
    /// TimeUs, Gpu, Vf, Kind and Text.
    virtual std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) = 0;
    /// True if vgpud is on the bus. Does not start vgpud, as other calls do if it does not run.
    virtual bool is_running() = 0;
    /// Waits for an event, for the end or start of vgpud, or until a descriptor of `stop_on` is
    /// ready. One result may stand for several events.
    virtual BusChange wait_for_change(const std::vector<pollfd>& stop_on) = 0;
    /// The JSON of Manager.Plan for the text of a configuration. Changes nothing.
    virtual std::string plan(const std::string& config, const Options& options) = 0;
    /// Applies a configuration. Returns the path of the job, which continues without its caller.
    virtual std::string apply(const std::string& config, const Options& options) = 0;
    /// The configuration of the present VFs as JSON. Changes nothing.
    virtual std::string export_config(const Options& options) = 0;
    /// A configuration as JSON, with a label for each way to split GPUs into equal VFs. Changes
    /// nothing.
    virtual std::string auto_config(const Options& options) = 0;
    /// Waits until a job has ended or `is_enough` returns true, and returns the last properties.
    /// Calls `is_enough` after each read of the properties. Does not throw if the job failed: the
    /// properties State, Error and ErrorName report this. Returns none if one of `stop_on` is ready
    /// first.
    virtual std::optional<Properties> await_job(
        const std::string& path, const std::function<bool(const Properties&)>& is_enough,
        const std::vector<pollfd>& stop_on) = 0;
    /// All jobs, sorted by number, with Path and all properties except Plan.
    virtual std::vector<Properties> list_jobs() = 0;
    /// Requests that the job end after its current step. Throws the error WrongState (Failed) if
    /// the job is over or cannot be cancelled.
    virtual void cancel_job(const std::string& path) = 0;

    /// The metrics, as OpenMetrics text.
    virtual std::string metrics() = 0;
    /// The run table in force.
    virtual RunTable run_table(const std::string& gpu_path) = 0;
    /// Reads the recorded schedule from the position `after` on; 0 means from the start. Throws the
    /// error OutOfRange (Usage) if `after` comes from an earlier vgpud.
    virtual TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) = 0;
    /// The report of the GPU's PF core, as text cut at 16 MiB. Requires the right to control VFs.
    virtual std::string dump(const std::string& gpu_path) = 0;
};

/// Connects to a bus, but not yet to vgpud. `bus`: "system", "session" or an address. Throws
/// Unreachable if there is no such bus.
std::unique_ptr<Service> connect_service(const std::string& bus);

}  // namespace vgpu::cli
