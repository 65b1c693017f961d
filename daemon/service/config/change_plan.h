// SPDX-License-Identifier: MIT
//
// ChangePlan: ordered steps from the current VFs to the VFs of a configuration. If a desired VF has
// a UUID, the UUID determines its current VF. Else its name does, or DesiredVf::was if no VF has
// that name. A step changes only its own VF or the GPU's settings, except for Enable, which is the
// first step of its GPU. After each step the schedule is valid, VRAM and VF numbers suffice, and
// names are unique. Consecutive Set and Rename steps of one GPU count as one step, because they
// are one request. Steps without loss (set, rename, create) come first. A step that scrubs VRAM
// (resize, destroy) comes before them only if they wait for it. Only sums of VRAM matter, because
// the units of a VF need not be contiguous. Pure; ApplyRun carries plans out.
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
    Keep,    ///< do nothing
    Enable,  ///< give the GPU more VFs; the driver disables and enables the VFs that the GPU has
    Set,     ///< change settings and profile of a VF, or settings of the GPU
    Rename,
    Create,
    Resize,  ///< change the resources of a VF
    Destroy,
};
enum class Disruption {
    None,       ///< no effect on users
    VfRestart,  ///< the VF's driver must be unloaded; the VF's VRAM is scrubbed
    VfLoss,     ///< the VF and its VRAM content are lost
};

std::string_view name_of(Action action);
std::string_view name_of(Disruption disruption);
/// The disruption with this name; none for an unknown name.
std::optional<Disruption> disruption_named(std::string_view name);

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
    std::optional<VfCount> vf_count{};      ///< only for Enable
    /// For Create and Set: how the driver keeps each setting of the schedule (contract_words()).
    std::map<std::string, std::string> contract{};
    std::optional<OwnerRecord> owner{};  ///< former owner of a VF that is destroyed or recreated
    Needs needs = Needs::Nothing;        ///< the condition for the step
    /// Who uses the VF, or the GPU's VFs if `needs` is AllIdle, so that the step requires force;
    /// empty: nobody.
    std::string in_use{};
    /// Users because of whom the step cannot be done, even with force: VFs that are open or have a
    /// running domain, and GpuInventory::other_users; empty: none.
    std::string blocked{};
    std::string condition{};  ///< why the VF is not in service as defined; empty if it is
    std::string why{};        ///< reason for the step, as text

    bool operator==(const Step&) const = default;
};

Disruption disruption_of(const Step& step);

/// Quantum and longest wait of a VF, if the driver serves the GPU's functions in turn.
struct PlannedQuantum {
    std::string name;
    std::uint64_t quantum_us = 0;
    std::uint64_t worst_wait_us = 0;  ///< wait if all other VFs use up quanta and timeouts

    bool operator==(const PlannedQuantum&) const = default;
};

/// VRAM and limits of a GPU, and the total that the plan gives to VFs.
struct GpuRoom {
    std::string gpu;
    std::uint64_t vram_bytes = 0;                   ///< VRAM for all VFs, used or not
    std::uint64_t pf_vram_bytes = 0;                ///< VRAM that the PF keeps, in addition
    std::uint64_t planned_vram_bytes = 0;           ///< VRAM of the plan's VFs together
    std::optional<std::uint32_t> cu_count{};        ///< compute units; absent: each VF has all
    std::optional<std::uint32_t> doorbell_pages{};  ///< limit per VF; absent: cannot be chosen
    std::vector<PlannedQuantum>
        quanta{};  ///< after the plan; empty unless the driver serves the functions in turn

    bool operator==(const GpuRoom&) const = default;
};

struct ChangePlan {
    std::string label;
    std::vector<Step> steps;       ///< first Keep steps, then steps in the order of execution
    std::vector<GpuRoom> rooms{};  ///< in the order of the configuration's GPUs

    [[nodiscard]] bool is_empty() const;
    [[nodiscard]] Disruption disruption() const;  ///< the worst of all steps
};

/// Names on this host that VFs of the plan cannot have.
struct Surroundings {
    std::vector<std::string> gpus;             ///< ids of all GPUs
    std::map<std::string, std::string> names;  ///< paths of the VFs on other GPUs, by VF name
};

/// The VF or GPU that `step` changes: "gpu0/vf2" or "gpu0".
std::string target_of(const Step& step);
/// The step that rolls `step` back.
Step inverse_of(const Step& step);
/// Applies `step` to the model `gpu`; VFs stay sorted by number.
void perform(const Step& step, GpuInventory& gpu);

/// Makes the plan for `desired`. `gpus`: the inventories of the GPUs in `desired`, in any order;
/// the plan is valid only for these inventories. Fails as check_capacity() and check_settings(), or
/// with NoSchedule if no order of the steps is possible, NotOffered or Observed if the GPU cannot
/// get more VFs, NameTaken or BadConfiguration for a name, or NoSuchGpu.
Result<ChangePlan> make_change_plan(std::span<const DesiredGpu> desired,
                                    std::span<const GpuInventory> gpus, const Surroundings& around);

/// JSON of schema "vgpu-plan-1" (docs/dbus-api.md).
std::string encode_change_plan(const ChangePlan& plan);

}  // namespace vgpu::daemon
