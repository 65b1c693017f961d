// SPDX-License-Identifier: MIT
//
// Service is the interface org.vgpu1 in plain values, for the verbs. BusService implements it with
// the generated proxies; tests pass their own implementation. Failures are ServiceError: the D-Bus
// name, the message of the service, and the matching exit code. One thread.
#pragma once

#include <poll.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace vgpu::cli {

using Words = std::vector<std::string>;
/// A D-Bus value without its width: u and t are the same, as are o and s. Any other type is "?".
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// A property with members is flattened: "Agent.Connected" and so on.
using Properties = std::map<std::string, Value>;
/// Options of a method (its a{sv}); docs/dbus-api.md defines the names.
using Options = std::map<std::string, Value>;

/// Documented in docs/dbus-api.md.
/// Usage: the command line or a value in it was wrong; nothing was done. NotFound: no such GPU, VF
/// or label. NotAuthorized: polkit or the bus refused. Unreachable: no bus, no vgpud on it, or no
/// answer in time (the request may still be carried out). NoCapacity: no free or matching VF, VRAM
/// or schedule. Lost: the GPU or its PF core is gone. ReadOnly: vgpud does not trust or cannot
/// write its durable state. Failed: everything else.
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
};

/// Thrown by every call of Service, and by verbs for their own failures, with the name whose exit
/// code fits. what() is a text for people: the message and, for an error of the bus that does not
/// mention VFs (no such object or method), its meaning.
class ServiceError : public std::runtime_error {
public:
    ServiceError(std::string name, const std::string& message);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// The code for name(); Failed if the name is not in the table.
    [[nodiscard]] ExitCode exit_code() const;

private:
    std::string name_;
};

/// The run table in force, as returned by Gpu.GetRunTable.
/// Slices are in the order in which they run; their VF numbers count from 1.
struct RunTable {
    struct Slice {
        std::uint32_t vf = 0;
        std::uint32_t quantum_us = 0;
    };
    std::vector<Slice> slices;
    std::uint64_t generation = 0;
};

/// A part of a trace, as returned by Gpu.ReadTrace.
/// `next`: where the next call starts; `is_late`: items before this part were dropped unread.
struct TracePiece {
    std::string items;  ///< a CBOR sequence
    std::uint64_t next = 0;
    bool is_late = false;
};

/// Time limit for calls to a vgpud that may itself be the problem.
/// doctor and report pass it to limit_calls().
inline constexpr std::chrono::seconds kServicePatience{10};

/// Results of Service::wait_for_news().
/// Gone and Back refer to the bus name org.vgpu1: after Back it may be another vgpud.
enum class News { Event, Gone, Back, Stopped };

/// Actions on a VF that need no particular options.
/// Each is the method of org.vgpu1.Vf of the same name.
enum class VfAction { Reset, Pause, Resume, Stop, ClearQuarantine };
/// Requests to the agent in a VF's guest.
enum class AgentAct { SelfTest, Quiesce, Thaw };

/// `gpu` without the unknown properties, which vgpud reports as zero: properties of the device
/// before the PF core was reached, of the run table before one exists, and process ids of programs
/// that vgpud does not run. They are then absent in JSON and text.
Properties known_of(Properties gpu);

/// "gpu0/vf3" for "/org/vgpu1/gpu/gpu0/vf/3", "gpu0" for the path of a GPU.
std::string target_of_path(const std::string& path);

/// All calls block until vgpud answers or the limit has passed, and throw ServiceError. Paths are
/// D-Bus object paths from resolve() or a list's "Path"; a path is invalid once its object is gone.
class Service {
public:
    virtual ~Service() = default;

    /// Version, ApiVersion, ReadOnly, StateMessage, StateGeneration.
    virtual Properties manager() = 0;
    /// One Properties for each object, including "Path" and "Target".
    /// `names`, separated by commas: only these properties, and Path and Target; "": all.
    /// `max_age_ms`: vgpud may answer from values of this age; 0: it reads them now.
    /// Unknown properties of a GPU are absent (known_of()).
    virtual std::vector<Properties> list_gpus_with(const std::string& names,
                                                   std::uint32_t max_age_ms) = 0;
    virtual std::vector<Properties> list_vfs_with(const std::string& names,
                                                  std::uint32_t max_age_ms) = 0;
    std::vector<Properties> list_gpus() { return list_gpus_with({}, 0); }
    std::vector<Properties> list_vfs() { return list_vfs_with({}, 0); }
    /// All properties of one GPU or VF as last seen by vgpud, including Path and Target.
    /// NotFound if it is gone.
    virtual Properties object(const std::string& path) = 0;
    /// Object path of a target.
    /// `target`: "gpu0", "gpu0/vf3", a VF's name or its UUID. NotFound if there is none.
    virtual std::string resolve(const std::string& target) = 0;
    /// Object path of the new VF.
    /// `gpu`: id of the GPU; "": vgpud chooses.
    virtual std::string create_vf(const std::string& gpu, const Options& options) = 0;
    /// Changes only the settings in `options`.
    virtual void set_gpu(const std::string& path, const Options& options) = 0;
    /// A change of the contract takes effect with the next run table; a VF in use keeps running.
    virtual void set_vf(const std::string& path, const Options& options) = 0;
    /// Returns when the VRAM is scrubbed, unless options have no_wait.
    virtual void destroy_vf(const std::string& path, const Options& options) = 0;
    /// Returns the generation of the claim.
    /// `owner`: 1 to 128 printable ASCII characters without blanks, quotes and backslashes.
    virtual std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                                   const Options& options) = 0;
    /// `generation`: from claim_vf(); a later claim is not ended.
    virtual void release_vf(const std::string& path, const std::string& owner,
                            std::uint64_t generation, const Options& options) = 0;
    /// Assigns VFs to `owner`, all or none, each chosen by "name" or "profile". Returns Target,
    /// Path, Generation and Socket of each.
    /// Options: title, wait_ms (for VFs that are being scrubbed). NoCapacity if too few.
    virtual std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& wanted,
        const Options& options) = 0;
    /// Lets this user and group open the sockets of all VFs of `owner`.
    virtual void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) = 0;
    /// Takes all VFs of `owner` back, scrubbed; returns their number. Claims with `keep` stay.
    virtual std::uint64_t take_back_vfs(const std::string& owner) = 0;
    /// Returns how many VFs `owner` has, after restoring lost claims.
    /// For owners whose VM has kept running.
    virtual std::uint64_t adopt_vfs(const std::string& owner, const Options& options) = 0;
    /// Lowers the limit of all further calls; a lower earlier limit stays in force.
    /// A call that exceeds it throws with ExitCode::Unreachable; vgpud may still carry it out.
    virtual void limit_calls(std::chrono::milliseconds limit) = 0;
    /// Some actions require "force" for a VF that a client has open, or that is claimed.
    virtual void act(const std::string& path, VfAction action, const Options& options) = 0;
    /// Returns the report: ok, text, duration_ms.
    /// May take a little longer than the option timeout_ms (quiesce also waits for the device).
    /// `text` comes from the guest: do not trust it.
    virtual Properties ask_agent(const std::string& path, AgentAct act, const Options& options) = 0;

    /// Events with a Seq above `after` that vgpud keeps, the newest `limit` of them, oldest first:
    /// Seq, TimeUs, Gpu, Vf, Kind, Text.
    virtual std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) = 0;
    /// Waits until vgpud reports an event, goes away or comes back, or one of `stop_on` is ready.
    /// One Event may stand for several: read recent_events() until there is nothing new.
    virtual News wait_for_news(const std::vector<pollfd>& stop_on) = 0;
    /// The plan as JSON, with the options of Manager.Plan. Changes nothing.
    /// `config` is the text of a configuration.
    virtual std::string plan(const std::string& config, const Options& options) = 0;
    /// Starts a job and returns its object path once vgpud has accepted the document.
    /// The job continues if the caller leaves.
    virtual std::string apply(const std::string& config, const Options& options) = 0;
    /// The configuration that describes the present VFs; auto_config(): one with a label for each
    /// fair split. JSON text; changes nothing.
    virtual std::string export_config(const Options& options) = 0;
    virtual std::string auto_config(const Options& options) = 0;
    /// Waits until a job is over and returns its last properties; calls `on_change` now and then.
    /// A failed job does not throw: see State, Error and ErrorName of the result.
    virtual Properties await_job(const std::string& path,
                                 const std::function<void(const Properties&)>& on_change) = 0;
    /// The jobs that vgpud has or remembers, by number: Path and all properties except Plan.
    virtual std::vector<Properties> list_jobs() = 0;
    /// Returns at once; the job ends after its current step. WrongState (Failed) if it is over or
    /// cannot be undone.
    virtual void cancel_job(const std::string& path) = 0;

    /// OpenMetrics text.
    virtual std::string metrics() = 0;
    /// Asks vgpud, which has it from the PF core.
    virtual RunTable run_table(const std::string& gpu_path) = 0;
    /// Inputs and decisions of a GPU's scheduler, from `after` on; 0: all that vgpud keeps.
    /// OutOfRange if `after` comes from a vgpud that has ended: each counts from the start.
    virtual TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) = 0;
    /// The PF core's bug report.
    /// Requires the right to control VFs (polkit may ask for a password); cut at 16 MiB.
    virtual std::string dump(const std::string& gpu_path) = 0;
};

/// Connects to "system", "session" or a D-Bus address.
/// Does not contact vgpud: the first call does. ServiceError with ExitCode::Unreachable if there is
/// no such bus.
std::unique_ptr<Service> connect_service(const std::string& bus);

}  // namespace vgpu::cli
