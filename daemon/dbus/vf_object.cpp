// SPDX-License-Identifier: MIT
#include "daemon/dbus/vf_object.h"

#include "daemon/dbus/job_object.h"
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <array>

namespace vgpu::daemon::dbus {

namespace {

/// After this time the reply is TimedOut, and the operation continues.
constexpr Nanoseconds kScrubTimeout = std::chrono::seconds(60);
/// Limit for a job, which keeps no call open.
constexpr Nanoseconds kScrubJobTimeout = std::chrono::hours(1);
constexpr Nanoseconds kResetTimeout = std::chrono::seconds(30);
constexpr Nanoseconds kIdleTimeout = std::chrono::seconds(30);

const InterfaceName kInterface{org::vgpu1::Vf_adaptor::INTERFACE_NAME};

/// Replies when the VF is gone.
void await_scrub(Context& context, const Target& target, std::uint32_t generation,
                 Nanoseconds limit, const Done<>& reply) {
    // Generations are compared, because the number may have been reused.
    const auto is_gone = [&context, target, generation] {
        const auto seen = context.manager.find_gpu(target.gpu)->snapshot();
        return !seen->has_vf(target.vf) || seen->vfs.at(target.vf).active.generation != generation;
    };
    context.pending_conditions.add(
        is_gone, context.clock.now() + limit,
        fmt::format("{}/vf{} is still being scrubbed", target.gpu, target.vf), reply);
}

void await_reset(Context& context, const Target& target, const Done<>& reply) {
    const auto is_over = [&context, target] {
        const auto seen = context.manager.find_gpu(target.gpu)->snapshot();
        return seen->vf_state(target.vf) != VGPU_PF_VF_RESETTING;
    };
    context.pending_conditions.add(is_over, context.clock.now() + kResetTimeout,
                                   fmt::format("{}/vf{} is still resetting", target.gpu, target.vf),
                                   reply);
}

/// Replies when the action is done, and the reset that it may begin is over.
void control_vf(Context& context, const Target& target, vgpu_pf_control_action action,
                const Options& options, const Done<>& reply) {
    context.manager.control(target, action, options,
                            [&context, target, reply](const Result<>& started) {
                                if (!started) return reply(started);
                                await_reset(context, target, reply);
                            });
}

/// Thaws without a caller that waits for the result.
void thaw(Context& context, const Target& target) {
    context.agents.ask(target, AgentRequest::Thaw, {}, [](const Result<AgentReport>&) {});
}

/// Set to true by a cancel. Pending waits then end without effect.
using Cancelled = std::shared_ptr<bool>;

/// A Quiesce that has stopped the processes, and now waits for the device until `deadline`.
struct Stopped {
    Context& context;
    Target target;
    AgentReport report;
    Cancelled is_cancelled;
    Nanoseconds deadline;
    Done<AgentReport> reply;

    [[nodiscard]] GpuHost& gpu() const { return *context.manager.find_gpu(target.gpu); }
};

/// Replies. Unless the VF is idle, also thaws the processes.
void end_quiesce(const Stopped& quiesce, const Result<>& idle) {
    if (*quiesce.is_cancelled) return;
    if (!quiesce.context.agents.view(quiesce.target).is_connected)
        return quiesce.reply(
            fail(ErrorId::NoAgent, fmt::format("{}/vf{}: its agent is gone, its processes continue",
                                               quiesce.target.gpu, quiesce.target.vf)));
    if (idle) return quiesce.reply(quiesce.report);
    thaw(quiesce.context, quiesce.target);
    quiesce.reply(tl::make_unexpected(idle.error()));
}

void refresh_then_await_idle(const Stopped& quiesce);

/// Waits until the VF is idle. If the GPU leaves service, the wait ends early, and the next look
/// finds the reason.
void await_idle(const Stopped& quiesce) {
    const auto is_over = [quiesce] {
        if (*quiesce.is_cancelled) return true;
        // Requests counters for the next check. kFreshness prevents a loop.
        static_cast<void>(quiesce.gpu().request_refresh(Freshness::Counters, GpuModel::kFreshness));
        const auto seen = quiesce.gpu().snapshot();
        const std::uint32_t vf = quiesce.target.vf;
        return seen->gpu.state != GpuState::Ok || !seen->has_vf(vf) ||
               seen->vfs.at(vf).active.has_work == 0;
    };
    const auto done = [quiesce](const Result<>& over) {
        const bool is_known = quiesce.gpu().snapshot()->gpu.state == GpuState::Ok;
        if (over && !is_known) return refresh_then_await_idle(quiesce);
        end_quiesce(quiesce, over);
    };
    quiesce.context.pending_conditions.add(
        is_over, quiesce.deadline,
        fmt::format("{}/vf{} still has work; its processes continue", quiesce.target.gpu,
                    quiesce.target.vf),
        done);
}

/// Reads the state first, because a state from before the processes stopped does not count.
void refresh_then_await_idle(const Stopped& quiesce) {
    quiesce.gpu().ask<void>(
        [vf = quiesce.target.vf](GpuModel& model) { return model.refresh_now(vf); },
        [quiesce](const Result<>& looked) {
            if (!looked) return end_quiesce(quiesce, looked);
            await_idle(quiesce);
        });
}

/// Asks the agent. A Quiesce also waits for the device.
void ask_agent(Context& context, const Target& target, AgentRequest request, const Options& options,
               const Cancelled& is_cancelled, const Done<AgentReport>& reply) {
    context.agents.ask(
        target, request, options,
        [&context, target, request, is_cancelled, reply](const Result<AgentReport>& report) {
            if (!report) return reply(tl::make_unexpected(report.error()));
            if (request == AgentRequest::Quiesce && report->is_ok)
                return refresh_then_await_idle({.context = context,
                                                .target = target,
                                                .report = *report,
                                                .is_cancelled = is_cancelled,
                                                .deadline = context.clock.now() + kIdleTimeout,
                                                .reply = reply});
            reply(*report);
        });
}

/// Replies at once or, without no_wait, when the VF is gone.
void destroy(Context& context, const Target& target, const Options& options, Nanoseconds limit,
             const Done<>& reply) {
    constexpr std::array<std::string_view, 3> kKnown{"no_wait", "force", "owner"};
    const OptionReader reader(options);
    if (const auto known = reader.only(kKnown); !known) return reply(known);
    const auto no_wait = reader.flag("no_wait");
    if (!no_wait) return reply(tl::make_unexpected(no_wait.error()));
    context.manager.destroy(target, options,
                            [&context, target, limit, reply,
                             no_wait = *no_wait](const Result<std::uint32_t>& generation) {
                                if (!generation)
                                    return reply(tl::make_unexpected(generation.error()));
                                if (no_wait) return reply({});
                                await_scrub(context, target, *generation, limit, reply);
                            });
}

// --- as jobs

using JobDone = std::function<void(CallOrder::Answer)>;
Done<> without_report(const JobDone& done) {
    return [done](const Result<>& answer) {
        if (!answer) return done(tl::make_unexpected(answer.error()));
        done(std::nullopt);
    };
}

void start_destroy(Context& context, const Target& target, const Options& options,
                   const Cancelled& /*is_cancelled*/, const JobDone& done) {
    destroy(context, target, options, kScrubJobTimeout, without_report(done));
}

void start_reset(Context& context, const Target& target, const Options& options,
                 const Cancelled& /*is_cancelled*/, const JobDone& done) {
    control_vf(context, target, VGPU_PF_RESET, options, without_report(done));
}

template <AgentRequest request>
void start_agent(Context& context, const Target& target, const Options& options,
                 const Cancelled& is_cancelled, const JobDone& done) {
    ask_agent(context, target, request, options, is_cancelled,
              [done](const Result<AgentReport>& report) {
                  if (!report) return done(tl::make_unexpected(report.error()));
                  done(*report);
              });
}

void take_nothing_back(Context& /*context*/, const Target& /*target*/) {}

/// A method that Start() runs. `cancel`: null if the device cannot stop the operation half-way.
struct JobMethod {
    std::string_view method, kind, step;
    const char* action;
    void (*begin)(Context&, const Target&, const Options&, const Cancelled&, const JobDone&);
    void (*cancel)(Context&, const Target&);
};

constexpr std::array<JobMethod, 5> kJobMethods{{
    {"Destroy", "destroy", "its VRAM is scrubbed", kProvisionAction, start_destroy, nullptr},
    {"Reset", "reset", "its guest is notified, and the function is reset", kControlAction,
     start_reset, nullptr},
    {"SelfTest", "self-test", "the agent tests it", kControlAction,
     start_agent<AgentRequest::SelfTest>, take_nothing_back},
    {"Quiesce", "quiesce", "the agent stops its processes, and the device finishes its work",
     kControlAction, start_agent<AgentRequest::Quiesce>, thaw},
    {"Thaw", "thaw", "the agent lets its processes continue", kControlAction,
     start_agent<AgentRequest::Thaw>, take_nothing_back},
}};

Result<const JobMethod*> job_method(const std::string& method) {
    std::vector<std::string_view> names;
    for (const JobMethod& one : kJobMethods) {
        if (one.method == method) return &one;
        names.push_back(one.method);
    }
    const std::string shown = method.substr(0, 64);
    return fail(ErrorId::OutOfRange,
                fmt::format("method '{}' cannot be started as a job{}; possible: {}", shown,
                            did_you_mean(shown, names), fmt::join(names, ", ")));
}

Result<std::uint32_t> start(Context& context, const Target& target, const JobMethod& what,
                            const Options& options) {
    const auto is_cancelled = std::make_shared<bool>(false);
    CallOrder order{.kind = std::string(what.kind),
                    .step = fmt::format("{}/vf{}: {}", target.gpu, target.vf, what.step),
                    .begin =
                        [&context, &what, target, options, is_cancelled](const JobDone& done) {
                            what.begin(context, target, options, is_cancelled, done);
                        },
                    .cancel = nullptr};
    if (what.cancel != nullptr)
        order.cancel = [&context, &what, target, is_cancelled] {
            *is_cancelled = true;
            what.cancel(context, target);
        };
    return context.jobs.start(std::move(order));
}

}  // namespace

/// Jobs that no row describes create and destroy VFs.
const char* action_of_job(std::string_view kind) {
    for (const JobMethod& one : kJobMethods)
        if (one.kind == kind) return one.action;
    return kProvisionAction;
}

VfObject::VfObject(Context& context, Target target, const VfView& view, Telling telling)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{vf_path(target.gpu, target.vf)}),
      context_(context),
      target_(std::move(target)),
      made_for_(view.record.spec.uuid),
      signalled_(view) {
    add_texts(context_, signalled_);
    registerAdaptor();
    if (telling == Telling::Aloud) emitInterfacesAddedSignal({kInterface});
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
    // Usually nothing has changed, so this avoids the copy.
    if (!has_texts(view) && changes(signalled_, view).empty()) return;
    VfView now = view;
    add_texts(context_, now);
    const std::vector<PropertyName> changed = changes(signalled_, now);
    signalled_ = std::move(now);
    if (!changed.empty()) emitPropertiesChangedSignal(kInterface, changed);
}

void VfObject::Set(sdbus::Result<>&& result, SentOptions options) {
    authorized(context_, {calls_, current_sender(getObject())}, kProvisionAction, std::move(result),
               [&manager = context_.manager, target = target_, values = options_of(options)](
                   const Done<>& done) { manager.set_vf(target, values, done); });
}

void VfObject::Destroy(sdbus::Result<>&& result, SentOptions options) {
    const auto is_wanted = std::make_shared<bool>(false);
    authorized(
        context_, {calls_, current_sender(getObject())}, kProvisionAction, std::move(result),
        [&context = context_, target = target_, values = options_of(options),
         is_wanted](const Done<>& done) {
            *is_wanted = true;
            destroy(context, target, values, kScrubTimeout, done);
        },
        [is_wanted](const Error& why) {
            const bool is_done = *is_wanted && why.id == ErrorId::NoSuchVf;
            return is_done ? Result<>{} : Result<>(tl::make_unexpected(why));
        });
}

void VfObject::Reset(sdbus::Result<>&& result, SentOptions options) {
    control(VGPU_PF_RESET, std::move(result), options);
}

void VfObject::control(vgpu_pf_control_action action, sdbus::Result<>&& result,
                       const SentOptions& options) {
    authorized(context_, {calls_, current_sender(getObject())}, kControlAction, std::move(result),
               [&context = context_, target = target_, action, values = options_of(options)](
                   const Done<>& done) { control_vf(context, target, action, values, done); });
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

void VfObject::Claim(sdbus::Result<std::uint64_t>&& result, std::string owner,
                     SentOptions options) {
    check_owner(owner);
    authorized<std::uint64_t>(
        context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
        [&manager = context_.manager, target = target_, owner, values = options_of(options)](
            const Done<std::uint64_t>& done) { manager.claim(target, owner, values, done); });
}

void VfObject::Release(sdbus::Result<>&& result, std::string owner, std::uint64_t generation,
                       SentOptions options) {
    check_owner(owner);
    authorized(context_, {calls_, current_sender(getObject())}, kAssignAction, std::move(result),
               [&manager = context_.manager, target = target_, owner, generation,
                values = options_of(options)](const Done<>& done) {
                   manager.release(target, owner, generation, values, done);
               });
}

void VfObject::ask(AgentRequest request, sdbus::Result<Dict>&& result, const SentOptions& options) {
    authorized<Dict>(context_, {calls_, current_sender(getObject())}, kControlAction,
                     std::move(result),
                     [&context = context_, target = target_, request,
                      values = options_of(options)](const Done<Dict>& done) {
                         ask_agent(context, target, request, values, std::make_shared<bool>(false),
                                   [done](const Result<AgentReport>& report) {
                                       if (!report)
                                           return done(tl::make_unexpected(report.error()));
                                       done(dict_of(*report));
                                   });
                     });
}

void VfObject::SelfTest(sdbus::Result<Dict>&& result, SentOptions options) {
    ask(AgentRequest::SelfTest, std::move(result), options);
}

void VfObject::Quiesce(sdbus::Result<Dict>&& result, SentOptions options) {
    ask(AgentRequest::Quiesce, std::move(result), options);
}

void VfObject::Thaw(sdbus::Result<Dict>&& result, SentOptions options) {
    ask(AgentRequest::Thaw, std::move(result), options);
}

void VfObject::Start(sdbus::Result<sdbus::ObjectPath>&& result, std::string method,
                     SentOptions options) {
    const auto what = job_method(method);
    if (!what) throw to_dbus(what.error());
    authorized<sdbus::ObjectPath>(
        context_, {calls_, current_sender(getObject())}, (*what)->action, std::move(result),
        [&context = context_, target = target_, &what = **what,
         values = options_of(options)](const Done<sdbus::ObjectPath>& done) {
            const auto id = start(context, target, what, values);
            if (!id) return done(tl::make_unexpected(id.error()));
            done(sdbus::ObjectPath{job_path(*id)});
        });
}

#define VF_PROPERTY(name, type, signalled, value)                                \
    type VfObject::name() {                                                      \
        return read(#name, [](const VfView& v) -> type { return type{value}; }); \
    }
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY

}  // namespace vgpu::daemon::dbus
