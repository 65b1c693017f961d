// SPDX-License-Identifier: MIT
//
// ChangePlan: the way from the VFs there are to the VFs a configuration wants, as steps in order.
// VFs are matched by name (or by WantedVf::was), those of which the UUID is known by that. A step
// changes its own VF and no other; after each step the schedule is one that can be kept, the VRAM
// and the VF numbers suffice, and no name is there twice. What loses nothing comes first (set,
// rename, create), what empties a VF's VRAM later (resize, destroy), earlier only if something else
// needs its room. VRAM is handed out in scattered units, so only sums matter: there is no
// fragmentation. Pure; ApplyRun carries plans out.
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

/// Keep: nothing to do. In the order in which the planner prefers them.
enum class Action { Keep, Set, Rename, Create, Resize, Destroy };
enum class Disruption {
    None,       ///< nobody notices
    VfRestart,  ///< the VF's driver must be unloaded; its VRAM comes back empty
    VfLoss,     ///< the VF is gone, and what was in its VRAM
};

std::string_view name_of(Action action);
std::string_view name_of(Disruption disruption);
Disruption disruption_of(Action action);
/// Nothing for a word that is none.
std::optional<Disruption> disruption_named(std::string_view name);

struct Step {
    Action action = Action::Keep;
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU itself
    /// Of a VF: as it is, as it is to be. Set is about weight, quantum, contract, custody and
    /// profile, Rename about the name, Resize about the shape; Create has no `from`, Destroy no
    /// `to`.
    std::optional<VfDefinition> from{}, to{};
    std::optional<GpuSettings> gpu_from{}, gpu_to{};  ///< of a GPU
    std::optional<OwnerRecord> owner{};  ///< of a VF that goes, to have it again if it comes back
    std::string in_use{};   ///< why the step wants force: who has the VF; empty: nobody
    std::string trouble{};  ///< why the VF is not in service as it is defined; empty: it is
    std::string why{};

    bool operator==(const Step&) const = default;
};

/// What a GPU has for VFs and what of it they are given in the end.
struct GpuRoom {
    std::string gpu;
    std::uint64_t vram_bytes = 0;         ///< of all VFs together
    std::uint64_t pf_vram_bytes = 0;      ///< besides, kept by the PF
    std::uint64_t wanted_vram_bytes = 0;  ///< by the VFs of the plan
    std::uint32_t cu_count = 0;
    std::uint32_t doorbell_pages = 0;  ///< of each VF, at most

    bool operator==(const GpuRoom&) const = default;
};

/// Steps are in the order in which they have to be done.
struct ChangePlan {
    std::string label;
    std::vector<Step> steps;       ///< VFs to be kept first
    std::vector<GpuRoom> rooms{};  ///< in the order of what is wanted

    [[nodiscard]] bool is_empty() const;
    [[nodiscard]] Disruption disruption() const;  ///< the worst of all steps
};

/// What else there is on the host: names a VF cannot get.
struct Surroundings {
    std::vector<std::string> gpus;             ///< ids of all
    std::map<std::string, std::string> names;  ///< VFs of GPUs the plan is not about: name, target
};

/// Who has the VF: "it belongs to 'vm'"; empty: nobody.
std::string use_of(const InventoryVf& vf);
/// "gpu0/vf2", "gpu0"
std::string target_of(const Step& step);
/// The step that takes `step` back.
Step inverse_of(const Step& step);
/// What `step` does to `gpu`, which is the step's.
/// On the model only; VFs stay sorted by number.
void perform(const Step& step, GpuInventory& gpu);

/// `gpus` are those that `wanted` is about, in any order. NoVram, NoFreeVf, NoSchedule and
/// OutOfRange name the resource, the shortage and what would fit; NameTaken the name.
/// The plan is good only for the inventories it was made from.
Result<ChangePlan> make_change_plan(std::span<const WantedGpu> wanted,
                                    std::span<const GpuInventory> gpus, const Surroundings& around);

/// One JSON document, schema id "vgpu-plan-1" (docs/dbus-api.md).
std::string encode_change_plan(const ChangePlan& plan);

}  // namespace vgpu::daemon
