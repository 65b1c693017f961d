// SPDX-License-Identifier: MIT
//
// GpuModel: VFs that are defined and not in service as they are defined. They stay visible, with
// the reason; what they are defined to have is tried again, until it can be had or the operator
// changes or destroys the definition.
#include "daemon/service/gpu.h"

#include <fmt/format.h>

namespace vgpu::daemon {

/// Shows a VF without resources; said once for each reason.
void GpuModel::hold(const VfRecord& wanted, std::string trouble) {
    std::string& known_trouble = troubles_[wanted.vf];
    if (known_trouble != trouble) say(wanted.vf, "not-restored", trouble);
    known_trouble = std::move(trouble);
    show_absent(wanted);
}

/// As the PF core would tell of it, so that nobody has to know that this one was made up.
void GpuModel::show_absent(const VfRecord& wanted) {
    vgpu_pf_vf absent{};
    absent.vf = wanted.vf;
    absent.state = VGPU_PF_VF_ABSENT;
    live_[wanted.vf] = absent;
    shown_[wanted.vf] = wanted;
}

/// Counters and waits of the VF that was scrubbed are not the new one's. It stays in view, also if
/// the PF core is lost before it has made the new one.
void GpuModel::begin_anew(const VfRecord& wanted) {
    forget(wanted.vf);
    show_absent(wanted);
}

/// A VF that has no resources (any more): one that is defined is to have them again.
void GpuModel::note_absent(const vgpu_pf_vf& absent) {
    const GpuRecord record = record_to_be();
    const auto wanted = record.vfs.find(absent.vf);
    const bool is_defined = wanted != record.vfs.end() && !wanted->second.is_releasing;
    if (!is_defined) return forget(absent.vf);
    if (troubles_.contains(absent.vf))
        live_[absent.vf] = absent;
    else
        hold(wanted->second,
             fmt::format("'{}' was released by somebody else", wanted->second.name));
}

void GpuModel::restore_missing(Nanoseconds now) {
    if (troubles_.empty() || now < restore_at_ || !may_plan()) return;
    // What is missing (VRAM, a free number) rarely comes back by itself; requests that may have
    // freed some set restore_at_ back to now.
    restore_at_ = now + kRestoreRetry;
    const GpuRecord record = ports_.store.gpu(id_);
    for (const auto& [vf, wanted] : record.vfs) {
        const auto live = live_.find(vf);
        const bool is_absent = live == live_.end() || live->second.state == VGPU_PF_VF_ABSENT;
        if (!is_absent || !troubles_.contains(vf) || wanted.is_releasing) continue;
        const auto done = wanted.next ? finish_reshape(vf) : restore_vf(wanted);
        watch_loss(done);
        if (!ports_.pf->is_connected()) return;
        if (done) ask_again();
    }
    refresh_members(now);
}

/// Destroys a VF that has no resources: there is nothing to scrub.
Result<> GpuModel::forget_definition(std::uint32_t vf) {
    GpuRecord record = ports_.store.gpu(id_);
    record.vfs.erase(vf);
    TRY_VOID(ports_.store.commit(id_, record));
    troubles_.erase(vf);
    take_function_back(shown_.at(vf));
    forget(vf);
    say(vf, "released", fmt::format("VF {} is no longer defined; it had no resources", vf));
    return {};
}

/// Another shape for a VF that has no resources: tried at once.
Result<> GpuModel::redefine(std::uint32_t vf, const VfShape& shape) {
    GpuRecord record = ports_.store.gpu(id_);
    VfRecord& one = record.vfs.try_emplace(vf, shown_.at(vf)).first->second;
    set_shape(one, shape);
    one.next.reset();
    TRY_VOID(ports_.store.commit(id_, record));
    shown_[vf] = one;
    restore_at_ = Nanoseconds{0};
    step();
    return {};
}

Result<> GpuModel::in_service(std::uint32_t vf) const {
    if (live_.at(vf).state != VGPU_PF_VF_ABSENT) return {};
    const auto why = troubles_.find(vf);
    return fail(ErrorId::WrongState,
                fmt::format("{} has no resources now: {}", name_text(vf),
                            why == troubles_.end() ? "it is being made" : why->second));
}

/// What is in service under this number is what is defined, or nothing is.
Result<> GpuModel::defined_here(std::uint32_t vf) const {
    const auto why = troubles_.find(vf);
    if (why == troubles_.end() || live_.at(vf).state == VGPU_PF_VF_ABSENT) return {};
    return fail(ErrorId::WrongState, fmt::format("{}/vf{}: {}", id_, vf, why->second));
}

}  // namespace vgpu::daemon
