// SPDX-License-Identifier: MIT
//
// Manager: all GPUs of one vgpud. Finds targets (gpu0, gpu0/vf3, a VF's name, its UUID), chooses a
// GPU for a new VF, keeps names unique, and turns checked options into requests of GpuModel. Owns
// the GPUs and the state store. Runs in the main loop and never waits for a PF core: what is to be
// done is asked of a GpuHost, `done` is called from finish() (or at once, if it is refused here).
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

/// A GPU, or one of its VFs.
/// Says nothing about whether there is such a VF (now).
struct Target {
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU

    bool operator==(const Target&) const = default;
    auto operator<=>(const Target&) const = default;
};

/// "gpu0/vf3"
[[nodiscard]] std::string path_of(const Target& target);
/// AmbiguousName: `name` is that of several VFs.
[[nodiscard]] tl::unexpected<Error> ambiguous(std::string_view name, std::span<const Target> found);

/// Names are unique over all GPUs and VFs that are on record, there or not, also while requests
/// that give them are under way. Where a state has one twice all the same, it names nobody: each of
/// these VFs is told and is reached by its path. Errors that are found before a GPU is asked reach
/// `done` at once, within the call.
class Manager {
public:
    Manager(StatePort& port, const Clock& clock) : store_(port, &clock), clock_(clock) {
        store_.load();
        if (!store_.note().empty()) say("state-mended", store_.note());
    }

    [[nodiscard]] StateStore& store() { return store_; }
    void add(std::unique_ptr<GpuModel> gpu) {
        gpus_.push_back(std::make_unique<GpuHost>(std::move(gpu), clock_));
    }
    [[nodiscard]] const std::vector<std::unique_ptr<GpuHost>>& gpus() const { return gpus_; }
    /// Ids of these and of those that are on record only.
    [[nodiscard]] std::set<std::string> known_gpus() const;
    /// Null if there is none.
    [[nodiscard]] GpuHost* find_gpu(const std::string& id) const;

    /// Calls back for everything that was done.
    void finish();
    /// Ends the GPUs' threads; what was asked for and is not done gets no answer.
    void end() { gpus_.clear(); }

    /// In this order: a GPU's id, GPU/vfN, name or UUID of a VF. NoSuchVf, with the nearest name;
    /// AmbiguousName, with the paths of those that have it.
    Result<Target> resolve(const std::string& text) const;
    /// `gpu` empty: the one with the most VRAM for one VF. Options are those of docs/dbus-api.md.
    void create(const std::string& gpu, const Options& options, Done<Target> done);
    void set_vf(const Target& target, const Options& options, Done<> done);
    void set_gpu(const Target& target, const Options& options, Done<> done);
    /// The generation that is being released.
    /// Answered when the release has begun: whoever waits for the scrub looks for that generation.
    void destroy(const Target& target, const Options& options, Done<std::uint32_t> done);
    void control(const Target& target, vgpu_pf_control_action action, const Options& options,
                 Done<> done);

    /// Until let_go() nobody else may create, change or destroy VFs of `gpus`, and `names` are
    /// nobody else's. Busy, naming what has them, if some already are. One holder at a time.
    Result<> hold(const std::string& holder, const std::vector<std::string>& gpus,
                  const std::vector<std::string>& names);
    /// More names, of the holder there is.
    void hold_names(const std::vector<std::string>& names);
    void let_go();
    /// Makes durable which apply is under way (nothing: none), in the thread of a GPU that answers.
    void commit_apply(const std::optional<ApplyIntent>& apply, const Done<>& done);

    /// `owner` wants no VF any more: its claims of VFs that the apply under way has destroyed, and
    /// may make again, are over.
    void end_claims(const std::string& owner);
    /// True if the claim has ended since `gpu` is held: a VF that is made again is not its owner's.
    /// Known to this vgpud only; a recovery that the next one begins goes by the intent alone.
    [[nodiscard]] bool has_ended(const std::string& gpu, const OwnerRecord& claim) const;

    /// The generation of the claim; options: generation, keep, lease_s.
    void claim(const Target& target, const std::string& owner, const Options& options,
               const Done<std::uint64_t>& done);
    void release(const Target& target, const std::string& owner, std::uint64_t generation,
                 const Options& options, const Done<>& done);
    /// The owner has stopped: the VF is emptied, and its claim ends unless it is kept.
    void pause(const Target& target, const std::string& owner, std::uint64_t generation,
               const Done<>& done);

    /// A notice of vgpud itself; `kind` is a literal.
    void say(std::string_view kind, std::string text);
    /// The same of a VF.
    void say(const Target& target, std::string_view kind, std::string text);
    std::vector<Notice> take_notices();

private:
    struct EndedClaim {
        std::string gpu, owner;
        std::uint64_t generation = 0;

        auto operator<=>(const EndedClaim&) const = default;
    };

    [[nodiscard]] Result<> not_held(const std::string& gpu) const;
    void note_end(const EndedClaim& claim);
    [[nodiscard]] Result<GpuHost*> gpu_of(const Target& target) const;
    Result<> start_create(const std::string& gpu, const Options& options, const Done<Target>& done);
    Result<> start_set_vf(const Target& target, const Options& options, const Done<>& done);
    Result<> start_set_gpu(const Target& target, const Options& options, const Done<>& done);
    Result<> start_destroy(const Target& target, const Options& options,
                           const Done<std::uint32_t>& done);
    Result<> start_control(const Target& target, vgpu_pf_control_action action,
                           const Options& options, const Done<>& done);
    Result<> start_claim(const Target& target, const std::string& owner, const Options& options,
                         const Done<std::uint64_t>& done);
    Result<> start_release(const Target& target, const std::string& owner, std::uint64_t generation,
                           AfterRelease after, const Done<>& done);
    /// What is wrong with the name of the VF `own`; empty: nothing.
    [[nodiscard]] std::string clash_of(const std::string& name, const Target& own,
                                       const StateStore::Names& names) const;
    void look_for_clashes();
    template <typename T> Done<T> while_reserved(const std::string& name, Done<T> done);
    [[nodiscard]] Result<> name_is_free(const std::string& name, const Target& but) const;
    [[nodiscard]] Result<GpuHost*> gpu_for(const std::string& gpu) const;

    StateStore store_;
    const Clock& clock_;
    std::vector<Notice> notices_;            ///< of vgpud itself, not taken yet
    std::set<std::string> names_asked_for_;  ///< in requests that are not done yet
    std::map<Target, std::string> clashes_;  ///< of names, as they were told
    std::optional<std::uint64_t> clashes_version_;
    std::string holder_;
    std::set<std::string> held_gpus_, held_names_;
    std::set<EndedClaim> ended_claims_;  ///< of held GPUs, since the run or its recovery began
    std::vector<std::unique_ptr<GpuHost>> gpus_;
};

}  // namespace vgpu::daemon
