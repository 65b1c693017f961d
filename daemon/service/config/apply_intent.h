// SPDX-License-Identifier: MIT
//
// ApplyIntent: the record of an apply that is under way. It has the desired state of the apply's
// GPUs, and their state before the apply. The state files hold it from before the first step of the
// apply until after the last step. A vgpud that finds an intent at start finishes the apply or
// rolls the apply back (apply_recovery.h), so these GPUs have the old or the new configuration
// after any crash. Plain values; made by ApplyRun.
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

/// `before` and `after` list the same GPUs with all their VFs. In `before` a VF has its UUID,
/// number and owner. In `after` a VF is as the plan leaves it, and a new VF has no UUID.
struct ApplyIntent {
    std::string label;
    bool is_forced = false;         ///< true if steps may affect VFs in use
    std::string rollback_reason{};  ///< why the apply is rolled back; empty if it is not
    std::vector<DesiredGpu> after, before;

    bool operator==(const ApplyIntent&) const = default;

    [[nodiscard]] bool goes_forward() const { return rollback_reason.empty(); }
    [[nodiscard]] const std::vector<DesiredGpu>& goal() const {
        return goes_forward() ? after : before;
    }
};

/// The intent to apply `plan` to `gpus`, the state before the apply.
ApplyIntent intent_of(const ChangePlan& plan, bool is_forced, std::span<const GpuInventory> gpus);

std::vector<std::string> gpus_of(const ApplyIntent& intent);
/// Names of all VFs of the apply, before and after it.
std::vector<std::string> names_of(const ApplyIntent& intent);

enum class Claims { All, NotPersistent };
/// Generations of the claims that `owner` had on VFs of `gpu` before the apply.
std::set<std::uint64_t> claims_before(const ApplyIntent& intent, std::string_view gpu,
                                      std::string_view owner, Claims which = Claims::All);

/// True if no user of the VF forbids the step. Either the VF is unused, or the apply is forced and
/// the VF has the same user as when the apply began; the operator has accepted only these users.
/// False if the VF does not exist. A step of the GPU (step.vf 0) requires the same of all VFs of
/// that GPU. Even with force, such a step also requires that no VF is open or has a running domain,
/// and that the GPU has no other users.
bool may_take_vf(const ApplyIntent& intent, const Step& step, std::span<const GpuInventory> gpus);

/// True if the VF of `step` is new or differs from the VF before the apply. Then the apply caused
/// the condition of the VF.
bool is_changed_by(const ApplyIntent& intent, const Step& step);

}  // namespace vgpu::daemon
