// SPDX-License-Identifier: MIT
//
// Service: org.vgpu1 as the verbs use it, in plain values. BusService speaks through the generated
// proxies; tests pass a Service of their own. Failures are ServiceError: the D-Bus name, the
// service's words, and the exit code that belongs to them. One thread.
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
/// A D-Bus value without its width: u and t are one, so are o and s. A type that is none of these
/// is "?".
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// A property that has members of its own is here as "Agent.Connected" and so on.
using Properties = std::map<std::string, Value>;
/// As the method's a{sv} has them; names are those of docs/dbus-api.md.
using Options = std::map<std::string, Value>;

/// Documented in docs/dbus-api.md.
/// Usage: the command line or a value in it was wrong; nothing was done. NotFound: no such GPU, VF
/// or label. NotAuthorized: polkit or the bus said no. Unreachable: no bus, no vgpud on it, or no
/// answer in time (what was asked for may still happen). NoCapacity: no free or matching VF, VRAM
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

/// Thrown by every call of Service and by verbs for failures of their own, which then take the name
/// whose exit code fits. what() is a sentence for people: the message, and what it means where it
/// is the bus's own and says nothing of VFs (an object or a method that is not there).
class ServiceError : public std::runtime_error {
public:
    ServiceError(std::string name, const std::string& message);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// By name(); Failed for a name that is not in the table.
    [[nodiscard]] ExitCode exit_code() const;

private:
    std::string name_;
};

/// The run table in force, as Gpu.GetRunTable answers.
/// Slices are in the order in which they run; their VF numbers count from 1.
struct RunTable {
    struct Slice {
        std::uint32_t vf = 0;
        std::uint32_t quantum_us = 0;
    };
    std::vector<Slice> slices;
    std::uint64_t generation = 0;
};

/// As Gpu.ReadTrace answers.
/// `next` is what to ask for next; `is_late`: something between was dropped before it was read.
struct TracePiece {
    std::string items;  ///< a CBOR sequence
    std::uint64_t next = 0;
    bool is_late = false;
};

/// For the answer of a vgpud that may be the very thing that is ill.
/// Given to limit_calls() by doctor and report.
inline constexpr std::chrono::seconds kServicePatience{10};

/// What ends Service::wait_for_news().
/// Gone and Back are about the bus name org.vgpu1: another vgpud may be the one that is back.
enum class News { Event, Gone, Back, Stopped };

/// What can be done to a VF without options of its own.
/// Each is a method of org.vgpu1.Vf of the same name.
enum class VfAction { Reset, Pause, Resume, Stop, ClearQuarantine };
/// What the agent in a VF's guest can be asked for.
enum class AgentAct { SelfTest, Quiesce, Thaw };

/// `gpu` without the properties that nobody knows yet, for which vgpud has zeroes: those of the
/// device before the PF core was reached, those of the run table before there is one, and process
/// numbers of programs that vgpud does not run. They are then absent, in JSON as in text.
Properties known_of(Properties gpu);

/// "gpu0/vf3" of "/org/vgpu1/gpu/gpu0/vf/3", "gpu0" of the path of a GPU.
std::string target_of_path(const std::string& path);

/// All calls block until vgpud answers or the limit has passed, and throw ServiceError. Paths are
/// D-Bus object paths as resolve() and the lists' "Path" have them; they end with their object.
class Service {
public:
    virtual ~Service() = default;

    /// Version, ApiVersion, ReadOnly, StateMessage, StateGeneration.
    virtual Properties manager() = 0;
    /// One Properties for each object, with "Path" and "Target" among them.
    /// `names` by commas: only these properties, and Path and Target; "": all.
    /// `max_age_ms`: what vgpud saw of a GPU no longer ago will do; 0: it looks now.
    /// What is not known of a GPU is not there (known_of()).
    virtual std::vector<Properties> list_gpus_with(const std::string& names,
                                                   std::uint32_t max_age_ms) = 0;
    virtual std::vector<Properties> list_vfs_with(const std::string& names,
                                                  std::uint32_t max_age_ms) = 0;
    std::vector<Properties> list_gpus() { return list_gpus_with({}, 0); }
    std::vector<Properties> list_vfs() { return list_vfs_with({}, 0); }
    /// All properties of one GPU or VF as vgpud saw it last, with Path and Target among them.
    /// NotFound if it has gone.
    virtual Properties object(const std::string& path) = 0;
    /// Object path of a target.
    /// "gpu0", "gpu0/vf3", a VF's name or its UUID. NotFound if nobody has that.
    virtual std::string resolve(const std::string& target) = 0;
    /// Object path of the new VF.
    /// `gpu`: its id; "": vgpud chooses.
    virtual std::string create_vf(const std::string& gpu, const Options& options) = 0;
    /// Only what is in `options` changes.
    virtual void set_gpu(const std::string& path, const Options& options) = 0;
    /// A change of the contract is in force with the next run table; a VF in use goes on.
    virtual void set_vf(const std::string& path, const Options& options) = 0;
    /// Returns when the VRAM is scrubbed, unless options have no_wait.
    virtual void destroy_vf(const std::string& path, const Options& options) = 0;
    /// The generation of the claim.
    /// `owner`: 1 to 128 printable ASCII characters without blanks, quotes and backslashes.
    virtual std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                                   const Options& options) = 0;
    /// `generation` as claim_vf() returned it: a claim that is another one by now is left alone.
    virtual void release_vf(const std::string& path, const std::string& owner,
                            std::uint64_t generation, const Options& options) = 0;
    /// VFs for `owner`, all or none; each is wanted by "name" or "profile": Target, Path,
    /// Generation, Socket of each.
    /// Options: title, wait_ms (for VFs that are being scrubbed). NoCapacity if there are not
    /// enough.
    virtual std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& wanted,
        const Options& options) = 0;
    /// Lets that user and group open the sockets of all VFs of `owner`.
    virtual void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) = 0;
    /// How many VFs `owner` had.
    virtual std::uint64_t take_back_vfs(const std::string& owner) = 0;
    /// How many VFs `owner` has.
    /// Makes a claim that was lost again; for owners whose VM has gone on running.
    virtual std::uint64_t adopt_vfs(const std::string& owner, const Options& options) = 0;
    /// No call waits for longer from now on, nor for longer than was said before.
    /// A call that is over it throws with ExitCode::Unreachable; vgpud may still carry it out.
    virtual void limit_calls(std::chrono::milliseconds limit) = 0;
    /// A VF that a client has open, or that is claimed, wants the option "force" for some of these.
    virtual void act(const std::string& path, VfAction action, const Options& options) = 0;
    /// The report: ok, text, duration_ms.
    /// May take as long as its option timeout_ms and a little more (quiesce waits for the device,
    /// too). `text` is a guest's word: not to be trusted.
    virtual Properties ask_agent(const std::string& path, AgentAct act, const Options& options) = 0;

    /// Events that vgpud keeps with a Seq above `after`, oldest first, at most the newest `limit`:
    /// Seq, TimeUs, Gpu, Vf, Kind, Text.
    virtual std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) = 0;
    /// Waits until vgpud tells an event, goes, or comes back, or until one of `stop_on` is ready.
    /// May say Event for several at once: read recent_events() until there is nothing new.
    virtual News wait_for_news(const std::vector<pollfd>& stop_on) = 0;
    /// The plan as JSON; options as Manager.Plan has them.
    /// `config` is the text of a configuration. Changes nothing.
    virtual std::string plan(const std::string& config, const Options& options) = 0;
    /// Object path of the job.
    /// Answers as soon as the document is understood; the job goes on whoever stays to look.
    virtual std::string apply(const std::string& config, const Options& options) = 0;
    /// The configuration that wants exactly what there is; auto_config(): one with a label for each
    /// fair split. JSON text; changes nothing.
    virtual std::string export_config(const Options& options) = 0;
    virtual std::string auto_config(const Options& options) = 0;
    /// Waits until a job is over; `on_change` is told its properties now and then. Its last ones.
    /// A job that failed is no ServiceError: State, Error and ErrorName of the result tell.
    virtual Properties await_job(const std::string& path,
                                 const std::function<void(const Properties&)>& on_change) = 0;
    /// The jobs that vgpud has or remembers, by number: all properties but Plan, and Path.
    virtual std::vector<Properties> list_jobs() = 0;
    /// Answers at once; the job ends after the step under way. WrongState (Failed) if it is over,
    /// or cannot be taken back.
    virtual void cancel_job(const std::string& path) = 0;

    /// OpenMetrics text.
    virtual std::string metrics() = 0;
    /// Read from vgpud, which had it from the PF core.
    virtual RunTable run_table(const std::string& gpu_path) = 0;
    /// What the scheduler of a GPU was told and decided, from `after` on; 0: all that is kept.
    /// OutOfRange if `after` was given by a vgpud that has ended: each counts anew.
    virtual TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) = 0;
    /// The PF core's own bug report.
    /// Wants the right to control VFs (polkit may ask for a password); cut at 16 MiB.
    virtual std::string dump(const std::string& gpu_path) = 0;
};

/// Connects to "system", "session" or a D-Bus address.
/// Does not ask whether vgpud is there: the first call does. ServiceError with
/// ExitCode::Unreachable if there is no such bus.
std::unique_ptr<Service> connect_service(const std::string& bus);

}  // namespace vgpu::cli
