// SPDX-License-Identifier: MIT
//
// ChangePlan: ordered steps from the current VFs to those of a configuration. VFs are matched by
// UUID if known, else by name or DesiredVf::was. A step changes only its own VF or the GPU's
// settings, except for Enable, which comes before all others; after each step the schedule is
// valid, VRAM and VF numbers suffice, and names are unique. Steps without loss come first (set,
// rename, create). Steps that scrub VRAM (resize, destroy) come earlier only if other steps need
// the VRAM. Only sums of VRAM matter, because the units of a VF need not be contiguous. Pure;
// ApplyRun carries plans out.
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

/// In the order in which the planner prefers them. Keep: nothing to do. Enable: the GPU gets more
/// VFs; if it has some, the driver disables them all and enables them again.
enum class Action { Keep, Enable, Set, Rename, Create, Resize, Destroy };
enum class Disruption {
    None,       ///< no effect on users
    VfRestart,  ///< the VF's driver must be unloaded; its VRAM is scrubbed
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
    /// The VF before and after. They differ in settings and profile (Set), in the name (Rename) or
    /// in the resources (Resize). Create has no `from`, Destroy has no `to`.
    std::optional<VfSpec> from{}, to{};
    std::optional<GpuSettings> gpu_from{}, gpu_to{};  ///< set if the step changes the GPU itself
    std::optional<VfCount> vf_count{};                ///< Enable
    /// Create, Set: how the driver keeps each setting of the schedule (contract_words()).
    std::map<std::string, std::string> contract{};
    std::optional<OwnerRecord> owner{};  ///< former owner of a VF that is destroyed or recreated
    Needs needs = Needs::Nothing;        ///< the condition for the step
    std::string in_use{};  ///< who uses the VF, if the step therefore requires force; else empty
    /// The VFs for which the step waits, because they are open or a domain runs with them; empty if
    /// none. Force does not override this.
    std::string blocked{};
    std::string condition{};  ///< why the VF is not in service as defined; empty if it is
    std::string why{};        ///< reason for the step, as text

    bool operator==(const Step&) const = default;
};

Disruption disruption_of(const Step& step);

/// Quantum and longest wait of a VF, if the driver serves its functions in turn.
struct PlannedQuantum {
    std::string name;
    std::uint64_t quantum_us = 0;
    std::uint64_t worst_wait_us = 0;  ///< if all others use up their quanta and timeouts

    bool operator==(const PlannedQuantum&) const = default;
};

/// VRAM and limits of a GPU, and the total that the plan gives to VFs.
struct GpuRoom {
    std::string gpu;
    std::uint64_t vram_bytes = 0;                   ///< of all VFs
    std::uint64_t pf_vram_bytes = 0;                ///< kept by the PF, in addition
    std::uint64_t planned_vram_bytes = 0;           ///< total of the plan's VFs
    std::optional<std::uint32_t> cu_count{};        ///< absent: each VF has all
    std::optional<std::uint32_t> doorbell_pages{};  ///< limit per VF; absent: cannot be chosen
    std::vector<PlannedQuantum>
        quanta{};  ///< after the plan; empty if the driver schedules otherwise

    bool operator==(const GpuRoom&) const = default;
};

/// Steps are in the order of execution.
struct ChangePlan {
    std::string label;
    std::vector<Step> steps;       ///< VFs to keep first
    std::vector<GpuRoom> rooms{};  ///< in the order of `desired`

    [[nodiscard]] bool is_empty() const;
    [[nodiscard]] Disruption disruption() const;  ///< the worst of all steps
};

/// Names on this host that VFs of the plan cannot have.
struct Surroundings {
    std::vector<std::string> gpus;             ///< ids of all GPUs
    std::map<std::string, std::string> names;  ///< of VFs on other GPUs: name, target
};

/// "gpu0/vf2", "gpu0"
std::string target_of(const Step& step);
Step inverse_of(const Step& step);
/// Applies `step` to the model `gpu`; VFs stay sorted by number.
void perform(const Step& step, GpuInventory& gpu);

/// `gpus`: the inventories of the GPUs in `desired`, in any order; the plan is valid only for these
/// inventories. Errors: those of check_capacity(), with the resource, the shortage and what would
/// fit; NoSchedule also if no order of the steps is possible; NotOffered or Observed if the GPU
/// cannot get more VFs; NameTaken or BadConfiguration with the name; NoSuchGpu.
Result<ChangePlan> make_change_plan(std::span<const DesiredGpu> desired,
                                    std::span<const GpuInventory> gpus, const Surroundings& around);

/// JSON of schema "vgpu-plan-1" (docs/dbus-api.md).
std::string encode_change_plan(const ChangePlan& plan);

}  // namespace vgpu::daemon
