// SPDX-License-Identifier: MIT
//
// Manager: all GPUs of one vgpud. Finds targets (gpu0, gpu0/vf3, a VF's name or UUID), chooses the
// GPU of a new VF, keeps names unique, and passes checked options to GpuModels. Owns the GPUs and
// the state store. Runs in the main loop and never waits for a PF core: finish() calls the `done`
// of a request that a GPU's thread has carried out. If Manager itself refuses a request, it calls
// `done` before it returns.
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

[[nodiscard]] std::string path_of(const Target& target);
/// The error AmbiguousName for `name`, the name of all VFs in `found`.
[[nodiscard]] tl::unexpected<Error> ambiguous(std::string_view name, std::span<const Target> found);

/// Manager gives a VF only a name that no GPU, no other VF on record and no other request under way
/// has. If VFs share a name in the state files, Manager reports the clash, and resolve() finds
/// these VFs only by path or UUID.
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
    /// Ids of gpus() and of GPUs that are only on record.
    [[nodiscard]] std::set<std::string> known_gpus() const;
    /// Null if no GPU has this id.
    [[nodiscard]] GpuHost* find_gpu(const std::string& id) const;
    /// NoSuchGpu, with the nearest id.
    [[nodiscard]] Result<GpuHost*> gpu_of(const std::string& id) const;

    /// Calls the `done` of requests that the GPUs' threads have carried out, and finds new clashes
    /// of names.
    void finish();
    /// Ends the GPUs' threads. Requests under way get no answer.
    void end() { gpus_.clear(); }

    /// Tries a GPU's id, GPU/vfN, and a VF's name or UUID. NoSuchVf, with the nearest name;
    /// AmbiguousName, with the VFs' paths.
    Result<Target> resolve(const std::string& text) const;
    /// Creates a VF on `gpu`. If `gpu` is empty, takes the GPU with the most VRAM for one VF.
    /// Options: docs/dbus-api.md.
    void create(const std::string& gpu, const Options& options, Done<Target> done);
    void set_vf(const Target& target, const Options& options, Done<> done);
    void set_gpu(const Target& target, const Options& options, Done<> done);
    /// Answers when the release has begun, with the generation that the VF had before.
    void destroy(const Target& target, const Options& options, Done<std::uint32_t> done);
    /// Answers when the PF core has accepted the action; a reset may still be under way.
    void control(const Target& target, vgpu_pf_control_action action, const Options& options,
                 Done<> done);

    /// Locks `gpus` and `names`: until unlock() only the holder may create, change or destroy VFs
    /// of `gpus`, change the settings of `gpus`, or use `names`. Claims and control() stay
    /// possible. Busy if there is a holder. NameTaken if another request is giving one of `names`
    /// to a VF.
    Result<> lock(const std::string& holder, const std::vector<std::string>& gpus,
                  const std::vector<std::string>& names);
    /// Adds names to the current holder's lock.
    void lock_names(const std::vector<std::string>& names);
    void unlock();
    /// Makes it durable that `apply` is under way; std::nullopt: that no apply is under way. A
    /// GPU's thread writes the file; without GPUs the main loop does.
    void commit_apply(const std::optional<ApplyIntent>& apply, const Done<>& done);

    /// Call it when the VFs of `owner` are unassigned. Records the end of the owner's claims of VFs
    /// that the current apply has destroyed, except persistent claims. If the apply is rolled back,
    /// it recreates these VFs without an owner.
    void end_claims(const std::string& owner);
    /// True if the claim has ended since the current apply began. Then a rollback recreates the VF
    /// without an owner. Not durable: after a restart of vgpud, the recovery knows only the claims
    /// that ended since the restart.
    [[nodiscard]] bool has_ended(const std::string& gpu, const OwnerRecord& claim) const;

    /// Answers with the generation of the claim. Options: generation, lease_s, persistent.
    void claim(const Target& target, const std::string& owner, const Options& options,
               const Done<std::uint64_t>& done);
    void release(const Target& target, const std::string& owner, std::uint64_t generation,
                 const Options& options, const Done<>& done);
    /// Call it when the owner has stopped. Scrubs the VF, and ends a claim that is not persistent.
    void release_after_stop(const Target& target, const std::string& owner,
                            std::uint64_t generation, const Done<>& done);

    /// Emits an event of vgpud itself.
    void emit(EventKind kind, std::string text);
    void emit(const Target& target, EventKind kind, std::string text);
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
    std::map<Target, std::string> clashes_;         ///< name clashes, as reported
    std::optional<std::uint64_t> clashes_version_;  ///< names_version() that clashes_ belongs to
    std::string holder_;
    std::set<std::string> locked_gpus_, locked_names_;
    std::set<EndedClaim> ended_claims_;  ///< claims on locked GPUs that ended since the current
                                         ///< apply began
    std::vector<std::unique_ptr<GpuHost>> gpus_;
};

}  // namespace vgpu::daemon
