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
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Words>;
/// A property that has members of its own is here as "Agent.Connected" and so on.
using Properties = std::map<std::string, Value>;
using Options = std::map<std::string, Value>;

/// Documented in docs/dbus-api.md.
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

class ServiceError : public std::runtime_error {
public:
    ServiceError(std::string name, const std::string& message)
        : std::runtime_error(message), name_(std::move(name)) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] ExitCode exit_code() const;

private:
    std::string name_;
};

/// The run table in force, as Gpu.GetRunTable answers.
struct RunTable {
    struct Slice {
        std::uint32_t vf = 0;
        std::uint32_t quantum_us = 0;
    };
    std::vector<Slice> slices;
    std::uint64_t generation = 0;
};

/// As Gpu.ReadTrace answers.
struct TracePiece {
    std::string items;  ///< a CBOR sequence
    std::uint64_t next = 0;
    bool is_late = false;
};

/// For the answer of a vgpud that may be the very thing that is ill.
inline constexpr std::chrono::seconds kServicePatience{10};

/// What ends Service::wait_for_news().
enum class News { Event, Gone, Back, Stopped };

/// What can be done to a VF without options of its own.
enum class VfAction { Reset, Pause, Resume, Stop, ClearQuarantine };
/// What the agent in a VF's guest can be asked for.
enum class AgentAct { SelfTest, Quiesce, Thaw };

class Service {
public:
    virtual ~Service() = default;

    virtual Properties manager() = 0;
    virtual std::vector<Properties> list_gpus() = 0;
    virtual std::vector<Properties> list_vfs() = 0;
    /// Object path of a target.
    virtual std::string resolve(const std::string& target) = 0;
    /// Object path of the new VF.
    virtual std::string create_vf(const std::string& gpu, const Options& options) = 0;
    virtual void set_gpu(const std::string& path, const Options& options) = 0;
    virtual void set_vf(const std::string& path, const Options& options) = 0;
    virtual void destroy_vf(const std::string& path, const Options& options) = 0;
    /// The generation of the claim.
    virtual std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                                   const Options& options) = 0;
    virtual void release_vf(const std::string& path, const std::string& owner,
                            std::uint64_t generation, const Options& options) = 0;
    /// VFs for `owner`, all or none; each is wanted by "name" or "profile": Target, Path,
    /// Generation, Socket of each.
    virtual std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& wanted,
        const Options& options) = 0;
    virtual void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) = 0;
    /// How many VFs `owner` had.
    virtual std::uint64_t take_back_vfs(const std::string& owner) = 0;
    /// How many VFs `owner` has.
    virtual std::uint64_t adopt_vfs(const std::string& owner, const Options& options) = 0;
    /// No call waits for longer from now on.
    virtual void limit_calls(std::chrono::milliseconds limit) = 0;
    virtual void act(const std::string& path, VfAction action, const Options& options) = 0;
    /// The report: ok, text, duration_ms.
    virtual Properties ask_agent(const std::string& path, AgentAct act, const Options& options) = 0;

    /// Events that vgpud keeps with a Seq above `after`, oldest first, at most the newest `limit`:
    /// Seq, TimeUs, Gpu, Vf, Kind, Text.
    virtual std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) = 0;
    /// Waits until vgpud tells an event, goes, or comes back, or until one of `stop_on` is ready.
    virtual News wait_for_news(const std::vector<pollfd>& stop_on) = 0;
    /// The plan as JSON; options as Manager.Plan has them.
    virtual std::string plan(const std::string& config, const Options& options) = 0;
    /// Object path of the job.
    virtual std::string apply(const std::string& config, const Options& options) = 0;
    virtual std::string export_config(const Options& options) = 0;
    virtual std::string auto_config(const Options& options) = 0;
    /// Waits until a job is over; `on_change` is told its properties now and then. Its last ones.
    virtual Properties await_job(const std::string& path,
                                 const std::function<void(const Properties&)>& on_change) = 0;

    /// OpenMetrics text.
    virtual std::string metrics() = 0;
    virtual RunTable run_table(const std::string& gpu_path) = 0;
    /// What the scheduler of a GPU was told and decided, from `after` on; 0: all that is kept.
    virtual TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) = 0;
    /// The PF core's own bug report.
    virtual std::string dump(const std::string& gpu_path) = 0;
};

/// Connects to "system", "session" or a D-Bus address.
std::unique_ptr<Service> connect_service(const std::string& bus);

}  // namespace vgpu::cli
