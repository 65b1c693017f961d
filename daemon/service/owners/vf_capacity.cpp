// SPDX-License-Identifier: MIT
#include "daemon/service/owners/vf_capacity.h"

#include "daemon/service/owners/assignment.h"

#include <map>
#include <utility>

namespace vgpu::daemon {

namespace {

using Rows = std::map<std::pair<std::string, std::string>, CapacityRow>;

/// Adds a VF to the total in the row of its GPU and profile. Returns that row.
CapacityRow& add_vf(Rows& rows, const GpuView& gpu, const std::string& profile) {
    CapacityRow& row = rows[{gpu.id, profile}];
    row.gpu = gpu.id;
    row.gpu_state = gpu.state;
    row.profile = profile;
    ++row.total;
    return row;
}

/// A VF whose scrub keeps failing has a condition. Such a VF does not count as free, because it may
/// never become free.
bool is_free(const Candidate& candidate, const VfView& view, GpuState gpu) {
    switch (candidate.availability) {
        case Availability::Free:
        case Availability::Own:  // unclaimed: capacity_of() passes the owner "" to candidates_of()
            return true;
        case Availability::Scrubbing:
            return gpu == GpuState::Ok && view.condition.empty();
        case Availability::OwnOpen:
        case Availability::Claimed:
        case Availability::Open:
        case Availability::NotInService:
            break;
    }
    return false;
}

bool is_claimed(const VfView& view, UnixTime now) {
    const OwnerRecord& owner = view.record.owner;
    return !owner.name.empty() && (!is_expired(owner, now) || view.active.is_attached);
}

}  // namespace

std::vector<CapacityRow> capacity_of(const Manager& manager) {
    const UnixTime now = manager.store().leases().now();
    Rows rows;
    for (const Candidate& one : candidates_of(manager, "", {}, now)) {
        const auto seen = manager.find_gpu(one.target.gpu)->snapshot();
        if (!seen->has_vf(one.target.vf)) continue;
        const VfView& view = seen->vfs.at(one.target.vf);
        CapacityRow& row = add_vf(rows, seen->gpu, one.profile);
        if (is_claimed(view, now))
            ++row.claimed;
        else
            ++(is_free(one, view, seen->gpu.state) ? row.free : row.unavailable);
    }
    // Before vgpud has attached to a GPU, the snapshot has no VFs, so the records are counted.
    for (const auto& gpu : manager.gpus()) {
        const auto seen = gpu->snapshot();
        if (seen->gpu.state == GpuState::Ok) continue;
        for (const auto& [vf, record] : manager.store().gpu(gpu->id()).vfs) {
            if (seen->has_vf(vf)) continue;
            CapacityRow& row = add_vf(rows, seen->gpu, record.spec.profile);
            ++(record.owner.name.empty() ? row.unavailable : row.claimed);
        }
    }
    std::vector<CapacityRow> all;
    for (auto& [key, row] : rows) all.push_back(std::move(row));
    return all;
}

const std::vector<CapacityRow>& CapacityCounter::update(const Manager& manager) {
    auto rows = capacity_of(manager);
    if (count_ == 0 || rows != rows_) ++count_;
    rows_ = std::move(rows);
    return rows_;
}

}  // namespace vgpu::daemon
