// SPDX-License-Identifier: MIT
#include "daemon/dbus/vf_object.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::daemon::dbus {

namespace {

constexpr Nanoseconds kScrubTimeout = std::chrono::seconds(60);
constexpr Nanoseconds kResetTimeout = std::chrono::seconds(30);

const InterfaceName kInterface{org::vgpu1::Vf_adaptor::INTERFACE_NAME};

/// Destroys now; replies at once or when the VF is gone.
void destroy(Context& context, const Target& target, const Options& options,
             const Waiters::Reply& reply) {
    constexpr std::array<std::string_view, 1> kKnown{"no_wait"};
    const OptionReader reader(options);
    if (const auto known = reader.only(kKnown); !known) return reply(known);
    const auto no_wait = reader.flag("no_wait");
    if (!no_wait) return reply(tl::make_unexpected(no_wait.error()));
    const auto generation = context.manager.destroy(target);
    context.refresh_objects();
    if (!generation) return reply(tl::make_unexpected(generation.error()));
    if (*no_wait) return reply({});
    const auto is_gone = [&context, target, was = *generation] {
        GpuModel* gpu = context.manager.find_gpu(target.gpu);
        return gpu == nullptr || !gpu->has_vf(target.vf) ||
               gpu->view(target.vf).live.generation != was;
    };
    context.waiters.add(is_gone, context.clock.now() + kScrubTimeout,
                        fmt::format("{}/vf{} is still being scrubbed", target.gpu, target.vf),
                        reply);
}

}  // namespace

VfObject::VfObject(Context& context, Target target)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{vf_path(target.gpu, target.vf)}),
      context_(context),
      target_(std::move(target)) {
    shown_ = fingerprint_of(view());
    registerAdaptor();
    emitInterfacesAddedSignal({kInterface});
}

VfObject::~VfObject() {
    emitInterfacesRemovedSignal({kInterface});
    unregisterAdaptor();
}

const VfView& VfObject::view() {
    GpuModel* gpu = context_.manager.find_gpu(target_.gpu);
    if (gpu != nullptr && gpu->has_vf(target_.vf)) view_ = gpu->view(target_.vf);
    return view_;
}

void VfObject::refresh() {
    Fingerprint now = fingerprint_of(view());
    const std::vector<PropertyName> changed = changes(shown_, now);
    shown_ = std::move(now);
    if (!changed.empty()) emitPropertiesChangedSignal(kInterface, changed);
}

void VfObject::Set(sdbus::Result<>&& result, SentOptions options) {
    authorized(context_, current_sender(getObject()), kProvisionAction, std::move(result),
               [&manager = context_.manager, target = target_, values = options_of(options)] {
                   return manager.set_vf(target, values);
               });
}

void VfObject::Destroy(sdbus::Result<>&& result, SentOptions options) {
    auto reply = std::make_shared<sdbus::Result<>>(std::move(result));
    const Waiters::Reply done = [reply](const Result<>& destroyed) {
        if (destroyed)
            reply->returnResults();
        else
            reply->returnError(to_dbus(destroyed.error()));
    };
    context_.authority.check(current_sender(getObject()), kProvisionAction,
                             [&context = context_, target = target_, values = options_of(options),
                              done](const Result<>& allowed) {
                                 if (!allowed) return done(allowed);
                                 destroy(context, target, values, done);
                             });
}

void VfObject::Reset(sdbus::Result<>&& result, SentOptions options) {
    auto reply = std::make_shared<sdbus::Result<>>(std::move(result));
    const Waiters::Reply done = [reply](const Result<>& reset) {
        if (reset)
            reply->returnResults();
        else
            reply->returnError(to_dbus(reset.error()));
    };
    context_.authority.check(
        current_sender(getObject()), kControlAction,
        [&context = context_, target = target_, values = options_of(options),
         done](const Result<>& allowed) {
            if (!allowed) return done(allowed);
            const auto started = context.manager.control(target, VGPU_PF_RESET, values);
            if (!started) return done(started);
            const auto is_over = [&context, target] {
                const GpuModel* gpu = context.manager.find_gpu(target.gpu);
                return gpu == nullptr || gpu->vf_state(target.vf) != VGPU_PF_VF_RESETTING;
            };
            context.waiters.add(is_over, context.clock.now() + kResetTimeout,
                                fmt::format("{}/vf{} is still resetting", target.gpu, target.vf),
                                done);
        });
}

void VfObject::control(vgpu_pf_control_action action, sdbus::Result<>&& result,
                       const SentOptions& options) {
    authorized(context_, current_sender(getObject()), kControlAction, std::move(result),
               [&manager = context_.manager, target = target_, action,
                values = options_of(options)] { return manager.control(target, action, values); });
}

void VfObject::Pause(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_PAUSE, std::move(result), options);
}

void VfObject::Resume(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_RESUME, std::move(result), options);
}

void VfObject::Stop(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_STOP, std::move(result), options);
}

void VfObject::ClearQuarantine(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_CLEAR_QUARANTINE, std::move(result), options);
}

#define VF_PROPERTY(name, type, signalled, value) \
    type VfObject::name() {                       \
        const VfView& v = view();                 \
        return type{value};                       \
    }
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY

}  // namespace vgpu::daemon::dbus
