// SPDX-License-Identifier: MIT
//
// ApplyIntent: the record of an apply that is under way. It has the state of the apply's GPUs
// before the apply, and the state that the plan leads to. A state file holds the intent from before
// the first step until the apply has ended or is rolled back. If vgpud crashes in this time, the
// next vgpud finds the intent when it starts, and finishes the apply or rolls the apply back
// (jobs/apply_recovery.h). Plain values; ApplyRun (jobs/apply_run.h) makes them.
#pragma once

#include "daemon/service/config/configuration.h"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

struct ChangePlan;
struct Step;

/// `before` and `after` list the same GPUs, each with all its VFs. VFs in `before` have their
/// UUIDs, numbers and owners. VFs in `after` are as the plan leaves them, without owners; a new VF
/// has no UUID.
struct ApplyIntent {
    std::string label;              ///< label of the configuration that is applied
    bool is_forced = false;         ///< true if steps may affect VFs in use
    std::string rollback_reason{};  ///< why the apply is rolled back; empty if it is not
    std::vector<DesiredGpu> after, before;

    bool operator==(const ApplyIntent&) const = default;

    /// False if the apply is rolled back.
    [[nodiscard]] bool goes_forward() const { return rollback_reason.empty(); }
    /// The state to reach in the current direction.
    [[nodiscard]] const std::vector<DesiredGpu>& goal() const {
        return goes_forward() ? after : before;
    }
};

/// The intent for `plan`. `gpus`: the inventories from which `plan` was made.
ApplyIntent intent_of(const ChangePlan& plan, bool is_forced, std::span<const GpuInventory> gpus);

/// Ids of the GPUs of the apply.
std::vector<std::string> gpus_of(const ApplyIntent& intent);
/// Names of all VFs in `after` and `before`. A name may occur twice.
std::vector<std::string> names_of(const ApplyIntent& intent);

/// Which claims claims_before() returns.
enum class Claims { All, NotPersistent };
/// Generations of the claims that `owner` had on VFs of `gpu` before the apply.
std::set<std::uint64_t> claims_before(const ApplyIntent& intent, std::string_view gpu,
                                      std::string_view owner, Claims which = Claims::All);

/// True if no user prevents `step`. For a step of one VF, the VF must exist and be unused. In a
/// forced apply, the VF may instead have the claim that it had when the apply began, and may be
/// open if it was open then. (The operator who forces an apply agrees to disturb these users, but
/// not later ones.) For a step of the GPU itself (step.vf is 0), each VF of the GPU must be unused
/// or, in a forced apply, have the claim that it had. In addition, no VF may be open or have a
/// running domain, and GpuInventory::other_users must be empty.
bool is_step_allowed(const ApplyIntent& intent, const Step& step,
                     std::span<const GpuInventory> gpus);

/// True if the VF of `step` did not exist before the apply, or if its spec before the apply differs
/// from step.from. If such a VF is not in service (Step::condition), the recovery assumes that the
/// apply is the cause, and rolls the apply back.
bool is_vf_changed(const ApplyIntent& intent, const Step& step);

}  // namespace vgpu::daemon
