// SPDX-License-Identifier: MIT
//
// ApplyIntent: an apply under way, in the state files from before its first act until after its
// last: the wanted state of its GPUs, and the state before. A vgpud that finds one finishes it or
// takes it back (apply_recovery.h), so these GPUs have the old or the new configuration after any
// crash. Plain values; made by ApplyRun, part of Records.
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

/// Both lists have all VFs of the same GPUs: `before` with UUID, number and owner, `wanted` as the
/// plan leaves them, new ones without a UUID.
struct ApplyIntent {
    std::string label;
    bool is_forced = false;    ///< for VFs in use when it began
    std::string back_cause{};  ///< why it is taken back; empty: it goes forward
    std::vector<WantedGpu> wanted, before;

    bool operator==(const ApplyIntent&) const = default;

    [[nodiscard]] bool goes_forward() const { return back_cause.empty(); }
    [[nodiscard]] const std::vector<WantedGpu>& goal() const {
        return goes_forward() ? wanted : before;
    }
};

/// `plan` is applied to `gpus`, the state before it.
ApplyIntent intent_of(const ChangePlan& plan, bool is_forced, std::span<const GpuInventory> gpus);

std::vector<std::string> gpus_of(const ApplyIntent& intent);
/// All names of its VFs, before and after.
std::vector<std::string> names_of(const ApplyIntent& intent);

enum class Claims { All, NotKept };
/// Generations of the claims `owner` had on VFs of `gpu` before the apply.
std::set<std::uint64_t> claims_before(const ApplyIntent& intent, std::string_view gpu,
                                      std::string_view owner, Claims which = Claims::All);

/// Whether the VF of `step` is unused, or its use began before a forced apply: the operator
/// accepted only that use.
bool is_use_forgiven(const ApplyIntent& intent, const Step& step,
                     std::span<const GpuInventory> gpus);

/// Whether the VF differs from before the apply, or is new: then the apply caused its trouble.
bool is_changed_by(const ApplyIntent& intent, const Step& step);

}  // namespace vgpu::daemon
