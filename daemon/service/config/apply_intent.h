// SPDX-License-Identifier: MIT
//
// ApplyIntent: an apply that is under way, as the state files have it from before its first act
// until after its last one: what is wanted of which GPUs, and what there was before. A vgpud that
// finds one finishes it or takes it back (apply_recovery.h), so that the configuration of these
// GPUs is the old or the new one whatever dies in between. Plain values; made by ApplyRun, part of
// Records.
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

/// Both have all VFs of the same GPUs: `before` each with its UUID, number and owner, `wanted` as
/// the plan would leave them, those that are new without a UUID.
struct ApplyIntent {
    std::string label;
    bool is_forced = false;    ///< on VFs that were in use when it began
    std::string back_cause{};  ///< why it is being taken back; empty: it goes forward
    std::vector<WantedGpu> wanted, before;

    bool operator==(const ApplyIntent&) const = default;

    [[nodiscard]] bool goes_forward() const { return back_cause.empty(); }
    /// What its direction is to lead to.
    [[nodiscard]] const std::vector<WantedGpu>& goal() const {
        return goes_forward() ? wanted : before;
    }
};

/// Of an apply that goes forward: `plan` is what it does to `gpus`, which are as before it.
ApplyIntent intent_of(const ChangePlan& plan, bool is_forced, std::span<const GpuInventory> gpus);

/// Ids of the GPUs it is about.
std::vector<std::string> gpus_of(const ApplyIntent& intent);
/// All names that its VFs have or are to have.
std::vector<std::string> names_of(const ApplyIntent& intent);

enum class Claims { All, NotKept };
/// Generations of the claims that `owner` had of VFs of `gpu` before.
std::set<std::uint64_t> claims_before(const ApplyIntent& intent, std::string_view gpu,
                                      std::string_view owner, Claims which = Claims::All);

/// True if nobody uses the VF of `step` now, or whoever does used it when the apply began, and the
/// operator said then that this does not matter. Later users never agreed to anything.
bool is_use_forgiven(const ApplyIntent& intent, const Step& step,
                     std::span<const GpuInventory> gpus);

/// True if the VF is not as it was before the apply, or was not there: what ails it is the apply's
/// doing.
bool is_changed_by(const ApplyIntent& intent, const Step& step);

}  // namespace vgpu::daemon
