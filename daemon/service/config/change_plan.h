// SPDX-License-Identifier: MIT
//
// ChangePlan: ordered steps from the current VFs of GPUs to the VFs of a configuration. A desired
// VF with a UUID describes the current VF with this UUID. A desired VF without a UUID describes the
// current VF with its name or, if there is none, with its former name (DesiredVf::was).
//
// A Keep step stands for a VF that does not change; all Keep steps come first. An Enable concerns
// all VFs of its GPU, and comes before all other changes of this GPU. Every other step changes one
// VF, or the settings of a GPU. Steps without loss (Set, Rename, Create) come before steps that
// scrub VRAM (Resize, Destroy), unless they wait for what a Resize or Destroy frees: VRAM, a VF
// number, a name or engine time. ApplyRun (jobs/apply_run.h) carries out consecutive Set and Rename
// steps of one GPU as one request.
//
// After each request the schedule is valid, VRAM and VF numbers suffice, and the names that the
// plan has given are unique. Only sums of VRAM matter, because the VRAM of a VF need not be
// contiguous. Pure.
#pragma once

#include "daemon/ports/result.h"
#include "daemon/service/config/configuration.h"
#include "daemon/service/vf/gpu_inventory.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Kinds of steps, in the order in which the planner prefers them.
enum class Action {
    Keep,    ///< do nothing: the VF is as desired
    Enable,  ///< enable more VFs; the driver first disables all VFs of the GPU
    Set,     ///< change settings and profile of a VF, or settings of the GPU
    Rename,
    Create,
    Resize,  ///< change the resources of a VF
    Destroy,
};
enum class Disruption {
    None,       ///< no loss; Step::needs may still require idle VFs
    VfRestart,  ///< the guest must unload the VF's driver; the VF's VRAM is scrubbed
    VfLoss,     ///< the VF and its VRAM content are lost
};

/// "create", "vf-loss" …
std::string_view name_of(Action action);
std::string_view name_of(Disruption disruption);
/// The disruption with this name; none for an unknown name.
std::optional<Disruption> disruption_named(std::string_view name);

/// One step of a plan.
struct Step {
    Action action = Action::Keep;
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU itself
    /// The VF before the step; none for Create and for the GPU itself.
    std::optional<VfSpec> from{};
    /// The VF after the step; none for Destroy and for the GPU itself. Differs from `from` in
    /// settings and profile (Set), in the name (Rename) or in the resources (Resize).
    std::optional<VfSpec> to{};
    std::optional<GpuSettings> gpu_from{};  ///< only for Set of the GPU: settings before the step
    std::optional<GpuSettings> gpu_to{};    ///< only for Set of the GPU: settings after the step
    std::optional<VfCount> vf_count{};      ///< only for Enable: number of VFs before and after
    /// For Create and Set: how the driver keeps each setting of the schedule (contract_words()).
    std::map<std::string, std::string> contract{};
    /// Destroy: the owner of the VF. Create in a rollback: the owner who gets the VF back.
    std::optional<OwnerRecord> owner{};
    Needs needs = Needs::Nothing;  ///< the condition for the step
    /// Users that the step would disturb, as text: users of the VF or, if `needs` is AllIdle, of
    /// all VFs of the GPU. Empty: none. If there are any, the step requires force.
    std::string in_use{};
    /// Users that prevent the step even with force, as text: VFs that are open or have a running
    /// domain, and GpuInventory::other_users. Empty: none.
    std::string blocked{};
    /// Keep, Set, Rename, Resize: why the VF is not in service as defined; empty if it is.
    std::string condition{};
    std::string why{};  ///< reason for the step, for users

    bool operator==(const Step&) const = default;
};

/// The disruption of the step's action; None for an Enable if the GPU had no enabled VFs.
Disruption disruption_of(const Step& step);

/// Quantum and longest wait of a VF on a GPU whose driver serves the functions in turn
/// (Abilities::pf_quantum_ms).
struct PlannedQuantum {
    std::string name;  ///< name of the VF
    std::uint64_t quantum_us = 0;
    /// Wait for the engine if all other functions use up their quanta and preemption timeouts.
    std::uint64_t worst_wait_us = 0;

    bool operator==(const PlannedQuantum&) const = default;
};

/// VRAM and limits of a GPU, and what the plan gives to its VFs. For users; not used by the
/// planner.
struct GpuRoom {
    std::string gpu;
    std::uint64_t vram_bytes = 0;             ///< VRAM for all VFs, used or not
    std::uint64_t pf_vram_bytes = 0;          ///< VRAM that the PF keeps, in addition
    std::uint64_t planned_vram_bytes = 0;     ///< VRAM of the plan's VFs together
    std::optional<std::uint32_t> cu_count{};  ///< number of compute units; absent: cannot be chosen
    std::optional<std::uint32_t> doorbell_pages{};  ///< limit of one VF; absent: cannot be chosen
    std::vector<PlannedQuantum>
        quanta{};  ///< after the plan; empty unless the driver serves its functions in turn

    bool operator==(const GpuRoom&) const = default;
};

/// The steps for all GPUs of a configuration, and the result for each GPU.
struct ChangePlan {
    std::string label;             ///< label of the configuration
    std::vector<Step> steps;       ///< Keep steps, then the other steps in order of execution
    std::vector<GpuRoom> rooms{};  ///< in the order of the configuration's GPUs

    [[nodiscard]] bool is_empty() const;          ///< true if all steps are Keep
    [[nodiscard]] Disruption disruption() const;  ///< the worst disruption of all steps
};

/// Names on this host that VFs of the plan cannot have.
struct Surroundings {
    std::vector<std::string> gpus;             ///< ids of all GPUs
    std::map<std::string, std::string> names;  ///< paths ("gpu1/vf2") of other GPUs' VFs, by name
};

/// The VF or GPU that `step` changes: "gpu0/vf2" or "gpu0".
std::string target_of(const Step& step);
/// The step that rolls `step` back.
Step inverse_of(const Step& step);
/// Changes `gpu`, a model of the GPU, as `step` changes the GPU. VFs stay sorted by number.
void perform(const Step& step, GpuInventory& gpu);

/// Makes the plan for `desired`. `gpus`: the inventories of the GPUs in `desired`, in any order;
/// the plan is valid only for these inventories. Fails as check_capacity() and check_settings() do;
/// with NoSchedule if no order of the steps is possible; with NotOffered or Observed if VFs must be
/// enabled but cannot be; with NameTaken or BadConfiguration for a name; or with NoSuchGpu.
Result<ChangePlan> make_change_plan(std::span<const DesiredGpu> desired,
                                    std::span<const GpuInventory> gpus, const Surroundings& around);

/// JSON of schema "vgpu-plan-1" (docs/dbus-api.md).
std::string encode_change_plan(const ChangePlan& plan);

}  // namespace vgpu::daemon
