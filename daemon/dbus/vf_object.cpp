// SPDX-License-Identifier: MIT
#include "daemon/dbus/vf_object.h"

#include "daemon/dbus/job_object.h"

#include <fmt/format.h>

namespace vgpu::daemon::dbus {

namespace {

const InterfaceName kInterface{org::vgpu1::Vf_adaptor::INTERFACE_NAME};

}  // namespace

VfObject::VfObject(Context& context, Target target, const VfView& view, Signals signals)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{vf_path(target.gpu, target.vf)}),
      context_(context),
      target_(std::move(target)),
      vf_uuid_(view.record.spec.uuid),
      signalled_(view) {
    add_domain_facts(context_, signalled_);
    registerAdaptor();
    if (signals == Signals::Emitted) emitInterfacesAddedSignal({kInterface});
}

VfObject::~VfObject() {
    try {
        emitInterfacesRemovedSignal({kInterface});
    } catch (const sdbus::Error&) {
        // the bus is gone, so no listener is left
    }
    const Error gone{
        ErrorId::NoSuchVf,
        fmt::format("{}/vf{} was destroyed before the call was answered", target_.gpu, target_.vf)};
    calls_.end_all(context_.is_stopping ? stopping() : gone);
    unregisterAdaptor();
}

void VfObject::refresh() {
    const auto seen = context_.manager.find_gpu(target_.gpu)->snapshot();
    if (!seen->has_vf(target_.vf)) return;
    const VfView& view = seen->vfs.at(target_.vf);
    // Usually nothing has changed, so this check avoids the copy.
    if (!needs_domain_facts(view) && changes(signalled_, view).empty()) return;
    VfView now = view;
    add_domain_facts(context_, now);
    const std::vector<PropertyName> changed = changes(signalled_, now);
    signalled_ = std::move(now);
    if (!changed.empty()) emitPropertiesChangedSignal(kInterface, changed);
}

void VfObject::Set(sdbus::Result<>&& result, SentOptions options) {
    run_if_authorized(context_, {calls_, current_sender(getObject())}, kProvisionAction,
                      std::move(result),
                      [&manager = context_.manager, target = target_, values = options_of(options)](
                          const Done<>& done) { manager.set_vf(target, values, done); });
}

void VfObject::control(vgpu_pf_control_action action, sdbus::Result<>&& result,
                       const SentOptions& options) {
    run_if_authorized(
        context_, {calls_, current_sender(getObject())}, kControlAction, std::move(result),
        [&manager = context_.manager, target = target_, action, values = options_of(options)](
            const Done<>& done) { manager.control(target, action, values, done); });
}

void VfObject::Pause(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_PAUSE, std::move(result), options);
}

void VfObject::Stop(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_STOP, std::move(result), options);
}

void VfObject::start(VfJob job, JobResult&& result, const SentOptions& options) {
    run_if_authorized<sdbus::ObjectPath>(
        context_, {calls_, current_sender(getObject())}, action_of_job(kind_of(job)),
        std::move(result),
        [&context = context_, job, target = target_,
         values = options_of(options)](const Done<sdbus::ObjectPath>& done) {
            const VfRun::Services services{context.manager, context.agents, context.clock};
            done(context.jobs.start(services, job, target, values).map(job_path));
        });
}

void VfObject::Claim(sdbus::Result<std::uint64_t>&& result, std::string owner,
                     SentOptions options) {
    check_owner(owner);
    run_if_authorized<std::uint64_t>(
        context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
        [&manager = context_.manager, target = target_, owner, values = options_of(options)](
            const Done<std::uint64_t>& done) { manager.claim(target, owner, values, done); });
}

void VfObject::Release(sdbus::Result<>&& result, std::string owner, std::uint64_t generation,
                       SentOptions options) {
    check_owner(owner);
    run_if_authorized(context_, {calls_, current_sender(getObject())}, kAssignAction,
                      std::move(result),
                      [&manager = context_.manager, target = target_, owner, generation,
                       values = options_of(options)](const Done<>& done) {
                          manager.release(target, owner, generation, values, done);
                      });
}

#define VF_JOB(name)                                               \
    void VfObject::name(JobResult&& result, SentOptions options) { \
        start(VfJob::name, std::move(result), options);            \
    }
VF_JOB(Destroy)
VF_JOB(Reset)
VF_JOB(Resume)
VF_JOB(ClearQuarantine)
VF_JOB(SelfTest)
VF_JOB(Quiesce)
VF_JOB(Thaw)
#undef VF_JOB

#define VF_PROPERTY(name, type, kind, value)                                                     \
    type VfObject::name() {                                                                      \
        return read(#name,                                                                       \
                    [](const VfView& v) { return known<type>(value).value_or(unset<type>()); }); \
    }
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY

}  // namespace vgpu::daemon::dbus
