// SPDX-License-Identifier: MIT
//
// Manager: all GPUs of one vgpud. Finds targets (gpu0, gpu0/vf3, a VF's name or UUID), chooses the
// GPU of a new VF, keeps names unique, and passes checked options to the GpuModel of a GPU. Owns
// the GPUs and the state store. Runs in the main loop and never waits for a PF core: a GPU's thread
// carries out a request, and finish() then calls the request's `done`. If Manager itself refuses a
// request, it calls `done` at once.
#pragma once

#include "daemon/service/gpu/host.h"
#include "daemon/service/input/options.h"
#include "daemon/service/state/store.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Identifies a GPU, or one of its VFs by number. The GPU and the VF need not exist.
struct Target {
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU

    bool operator==(const Target&) const = default;
    auto operator<=>(const Target&) const = default;
};

/// "gpu0/vf3". Only for a VF, not for a GPU.
[[nodiscard]] std::string path_of(const Target& target);
/// The error AmbiguousName, which lists the paths of `found`, the VFs with the name `name`.
[[nodiscard]] tl::unexpected<Error> ambiguous(std::string_view name, std::span<const Target> found);

/// Manager refuses a VF name that a GPU, another VF on record, a request under way or a lock()
/// uses. It also refuses names that begin with a GPU's id and "-vf"; only a VF's own default name,
/// such as "gpu0-vf3", is valid. State files can still give two VFs one name, or a VF the name of a
/// GPU. Then finish() emits an event, and resolve() may not find the VF by this name.
class Manager {
public:
    Manager(StatePort& port, const Clock& clock) : store_(port, &clock), clock_(clock) {
        store_.load();
    }

    [[nodiscard]] StateStore& store() { return store_; }
    [[nodiscard]] const StateStore& store() const { return store_; }
    void add(std::unique_ptr<GpuModel> gpu) {
        gpus_.push_back(std::make_unique<GpuHost>(std::move(gpu), clock_));
    }
    [[nodiscard]] const std::vector<std::unique_ptr<GpuHost>>& gpus() const { return gpus_; }
    [[nodiscard]] std::vector<std::string> gpu_ids() const;
    /// Ids of gpus(), and of absent GPUs that are on record.
    [[nodiscard]] std::set<std::string> known_gpus() const;
    /// Null if no GPU has this id.
    [[nodiscard]] GpuHost* find_gpu(const std::string& id) const;
    /// Fails with NoSuchGpu, which suggests a similar id, if any.
    [[nodiscard]] Result<GpuHost*> gpu_of(const std::string& id) const;

    /// Calls the `done` of requests that the GPUs' threads have carried out. Emits an event for
    /// each VF of gpus() whose name has become ambiguous.
    void finish();
    /// Ends the GPUs' threads and destroys the GPUs. Requests under way get no answer.
    void end() { gpus_.clear(); }

    /// Finds a GPU by its id, or a VF by its path (GPU/vfN), name or UUID. Fails with NoSuchVf,
    /// which suggests a similar name, if any, or with AmbiguousName, which lists the VFs' paths.
    Result<Target> resolve(const std::string& text) const;
    /// Creates a VF on `gpu`. If `gpu` is empty, chooses the GPU in service that can give a VF the
    /// most VRAM. docs/dbus-api.md lists the options of this request and of the other ones.
    void create(const std::string& gpu, const Options& options, Done<Target> done);
    /// Changes the name and the settings of a VF.
    void set_vf(const Target& target, const Options& options, Done<> done);
    /// Changes the settings of the GPU `target.gpu`; ignores `target.vf`.
    void set_gpu(const Target& target, const Options& options, Done<> done);
    /// Destroys a VF. Answers when the release of its resources, if any, has begun. The answer is
    /// VfFacts::generation of these resources (backend/facts.h).
    void destroy(const Target& target, const Options& options, Done<std::uint32_t> done);
    /// Pauses, resumes, stops or resets a VF, or ends its quarantine. Answers when the PF core has
    /// accepted the action; a reset may still be under way.
    void control(const Target& target, vgpu_pf_control_action action, const Options& options,
                 Done<> done);

    /// Locks `gpus` and `names` for `holder`, such as "job 3 (apply 'day')". Until unlock(),
    /// create(), set_vf(), set_gpu() and destroy() refuse these GPUs and names; the holder changes
    /// the GPUs through GpuHost::ask(). Claims and control() stay possible. Fails with Busy if
    /// there is a holder, or with NameTaken if a request under way gives one of `names` to a VF.
    Result<> lock(const std::string& holder, const std::vector<std::string>& gpus,
                  const std::vector<std::string>& names);
    /// Adds names to the current holder's lock.
    void lock_names(const std::vector<std::string>& names);
    void unlock();
    /// Records on disk that `apply` is under way, or, for std::nullopt, that no apply is. A GPU's
    /// thread writes the file; without GPUs, the main loop writes it.
    void commit_apply(const std::optional<ApplyIntent>& apply, const Done<>& done);

    /// Call it when the VFs of `owner` are unassigned. Ends the owner's claims on VFs that the
    /// current apply has destroyed, except persistent claims. A rollback of the apply then
    /// recreates these VFs without an owner (has_ended()).
    void end_claims(const std::string& owner);
    /// True if the claim has ended since the current apply began. Then a rollback recreates the VF
    /// without an owner. Manager keeps ended claims only in memory: after a restart of vgpud, the
    /// recovery knows only the claims that ended since the restart.
    [[nodiscard]] bool has_ended(const std::string& gpu, const OwnerRecord& claim) const;

    /// Claims a VF for `owner`, or renews the owner's claim. Answers with the claim's generation.
    void claim(const Target& target, const std::string& owner, const Options& options,
               const Done<std::uint64_t>& done);
    /// Ends the owner's claim `generation`. Succeeds if the VF has no claim; fails with StaleClaim
    /// or Claimed if another claim is in force.
    void release(const Target& target, const std::string& owner, std::uint64_t generation,
                 const Options& options, const Done<>& done);
    /// Call it when the owner has stopped. As release() with the option `scrub`, but a persistent
    /// claim stays (outlives_stops() in ownership.h).
    void release_after_stop(const Target& target, const std::string& owner,
                            std::uint64_t generation, const Done<>& done);

    /// Emits an event about vgpud itself.
    void emit(EventKind kind, std::string text);
    void emit(const Target& target, EventKind kind, std::string text);
    /// Events of Manager and of all GPUs since the last call.
    std::vector<AdminEvent> take_admin_events();

private:
    struct EndedClaim {
        std::string gpu, owner;
        std::uint64_t generation = 0;

        auto operator<=>(const EndedClaim&) const = default;
    };

    [[nodiscard]] Result<> not_locked(const std::string& gpu) const;
    void record_end(const EndedClaim& claim);
    Result<> start_release(const Target& target, const std::string& owner, std::uint64_t generation,
                           AfterRelease after, const Done<>& done);
    /// Why `name`, the name of the VF `own`, is not unique; empty if it is unique.
    [[nodiscard]] std::string clash_of(const std::string& name, const Target& own,
                                       const StateStore::Names& names) const;
    void find_clashes();
    template <typename T> Done<T> reserve_name(const std::string& name, Done<T> done);
    [[nodiscard]] Result<> name_is_free(const std::string& name, const Target& except) const;
    [[nodiscard]] Result<GpuHost*> gpu_for_new_vf(const std::string& gpu) const;

    StateStore store_;
    const Clock& clock_;
    std::vector<AdminEvent> admin_events_;          ///< emitted by Manager, not taken yet
    std::set<std::string> pending_names_;           ///< new names in requests under way
    std::map<Target, std::string> clashes_;         ///< by VF: why its name is not unique
    std::optional<std::uint64_t> clashes_version_;  ///< names_version() that clashes_ belongs to
    std::string holder_;                            ///< of lock(); empty: not locked
    std::set<std::string> locked_gpus_, locked_names_;
    std::set<EndedClaim> ended_claims_;  ///< claims on locked GPUs that ended since the current
                                         ///< apply began
    std::vector<std::unique_ptr<GpuHost>> gpus_;
};

}  // namespace vgpu::daemon
