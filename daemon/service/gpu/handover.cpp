// SPDX-License-Identifier: MIT
//
// GpuModel: assignment of the functions of VFs. A defined handover is set before the VF has
// resources, and set again if the platform restarts or its sysfs is written. An undefined handover
// is left to the platform and only shown.
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>

namespace vgpu::daemon {

namespace {

/// False for a VF without a record and for a VF that is being destroyed.
bool is_defined_in(const GpuRecord& record, std::uint32_t vf) {
    const auto at = record.vfs.find(vf);
    return at != record.vfs.end() && !at->second.is_releasing;
}

Handover handover_in(const GpuRecord& record, std::uint32_t vf) {
    const auto at = record.vfs.find(vf);
    return at == record.vfs.end() ? Handover::Default : at->second.custody.handover;
}

}  // namespace

/// Makes settings durable, then applies them. After a failure nothing has changed.
Result<> GpuModel::settle(const GpuRecord& before, const GpuRecord& after, const Asker& asker) {
    TRY_VOID(admit(after));
    TRY_VOID(check_handovers(before, after, asker));
    TRY_VOID(ports_.store.commit(id_, after));
    const auto moved = move_handovers(before, after);
    if (moved) return {};
    if (const auto undone = ports_.store.commit(id_, before); !undone) {
        for (const auto& [vf, one] : after.vfs) {
            const auto known = before.vfs.find(vf);
            if (known == before.vfs.end() || known->second != one) unrecorded_.insert(vf);
        }
        say(0, "record-left", undone.error().cause);
    }
    return moved;
}

/// Without force, no function is taken from an owner or from a client that has the VF open.
Result<> GpuModel::check_handovers(const GpuRecord& before, const GpuRecord& after,
                                   const Asker& asker) const {
    for (const auto& [vf, one] : after.vfs) {
        if (one.custody.handover == handover_in(before, vf)) continue;
        TRY_VOID(check_owner(vf, "set", asker.force, asker.owner));
        TRY_VOID(check_attached(vf, "set", asker.force));
    }
    return {};
}

Result<> GpuModel::move_handovers(const GpuRecord& before, const GpuRecord& after) {
    std::vector<std::uint32_t> moved;
    for (const auto& [vf, one] : after.vfs) {
        if (one.custody.handover == handover_in(before, vf)) continue;
        const auto set = set_handover(vf, one.custody.handover);
        if (!set) {
            for (const std::uint32_t other : moved)
                if (const auto back = set_handover(other, handover_in(before, other)); !back)
                    say(other, "not-handed-over", back.error().cause);
            return set;
        }
        moved.push_back(vf);
    }
    return {};
}

Result<> GpuModel::set_handover(std::uint32_t vf, Handover handover) {
    if (!ports_.handover)
        return fail(ErrorId::HandoverRefused,
                    fmt::format("{}/vf{}: handovers of this GPU cannot be changed", id_, vf));
    if (const auto set = ports_.handover->set(vf, handover); !set)
        return fail(set.error().id, fmt::format("{}/vf{}: handover '{}': {}", id_, vf,
                                                name_of(handover), set.error().cause));
    handover_troubles_.erase(vf);
    if (const auto now = ports_.handover->get(vf)) handovers_[vf] = *now;
    return {};
}

/// The VF is gone. The next VF with its number begins with the default handover.
void GpuModel::take_function_back(const VfRecord& record) {
    handover_troubles_.erase(record.vf);
    if (record.custody.handover == Handover::Default || !ports_.handover) return;
    if (const auto back = set_handover(record.vf, Handover::Default); !back)
        say(record.vf, "not-handed-over", back.error().cause);
}

void GpuModel::look_at_handovers() {
    if (!ports_.handover) return;
    const GpuRecord record = ports_.store.gpu(id_);
    for (const auto& [vf, one] : shown_) {
        const auto now = ports_.handover->get(vf);
        handovers_[vf] = now.value_or(Handover::Default);
        const Handover wanted = one.custody.handover;
        if (wanted == Handover::Default || !is_defined_in(record, vf) ||
            ports_.store.is_read_only(id_) || (now && *now == wanted)) {
            handover_troubles_.erase(vf);
            continue;
        }
        const auto set = set_handover(vf, wanted);
        if (set) {
            say(vf, "handed-over",
                fmt::format("{} has handover '{}' again", name_text(vf), name_of(wanted)));
            continue;
        }
        std::string& trouble = handover_troubles_[vf];
        if (trouble != set.error().cause) say(vf, "not-handed-over", set.error().cause);
        trouble = set.error().cause;
    }
}

}  // namespace vgpu::daemon
