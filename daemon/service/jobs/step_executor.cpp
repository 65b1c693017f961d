// SPDX-License-Identifier: MIT
#include "daemon/service/jobs/step_executor.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <span>

namespace vgpu::daemon {

namespace {

bool is_setting(const Step& step) {
    return step.action == Action::Set || step.action == Action::Rename;
}

/// The settings that `request` changes. A Set step gives all settings, including unchanged ones.
Settings settings_of(const std::vector<Step>& request, Force force) {
    Settings settings{.force = force};
    for (const Step& step : request) {
        if (step.gpu_to) settings.gpu = change_to(*step.gpu_to);
        if (!step.to) continue;
        VfChange& change = settings.vfs[step.vf];
        const VfChange more = step.action == Action::Set
                                  ? settings_of(*step.to)
                                  : VfChange{.to = *step.to, .given = {"name"}};
        apply(more, change.to);
        change.given.insert(more.given.begin(), more.given.end());
    }
    return settings;
}

/// A VF that is recreated keeps its UUID, number and owner.
CreateRequest create_request(const Step& step) {
    return {.spec = *step.to, .vf = step.vf, .owner = step.owner.value_or(OwnerRecord{})};
}

/// True if the step would disturb users of the VF. If there are such users, the step requires
/// force.
bool needs_force(const Step& step) {
    return disruption_of(step) != Disruption::None || step.needs >= Needs::VfIdle;
}

/// Force::Yes if the request may use force. Runs in the GPU's thread right before the request,
/// because VFs may have been claimed since the plan.
Result<Force> force_for(GpuModel& model, const Request& request, const ApplyIntent& intent) {
    if (!intent.is_forced || std::none_of(request.begin(), request.end(), needs_force))
        return Force::No;
    TRY(const GpuInventory now, model.inventory());
    const bool is_use_allowed = std::all_of(request.begin(), request.end(), [&](const Step& step) {
        return !needs_force(step) || is_step_allowed(intent, step, std::span(&now, 1));
    });
    return is_use_allowed ? Force::Yes : Force::No;
}

/// Carries out the request in the GPU's thread, unless another VF has the number of a step's VF
/// now. For a destroy, returns the generation of the VF; the destroy ends when no VF with this
/// generation is left. For other requests, the value has no meaning.
Result<std::uint32_t> carry_out(GpuModel& model, const Request& request,
                                const ApplyIntent& intent) {
    for (const Step& step : request)
        if (step.from) TRY_VOID(model.check_vf(step.vf, step.from->uuid));
    const Step& step = request.front();
    TRY(const Force force, force_for(model, request, intent));
    if (is_setting(step)) {
        TRY_VOID(model.configure(settings_of(request, force)));
        return std::uint32_t{0};
    }
    if (step.action == Action::Create) return model.create(create_request(step));
    if (step.vf_count) {
        TRY_VOID(model.enable_vfs(*step.vf_count, force));
        return std::uint32_t{0};
    }
    const std::uint32_t generation =
        model.has_vf(step.vf) ? model.view(step.vf).active.generation : 0;
    if (step.action == Action::Resize) {
        TRY_VOID(model.resize(step.vf, step.to->resources, force));
    } else {
        TRY_VOID(model.destroy(step.vf, force));
    }
    return generation;
}

}  // namespace

std::vector<Request> requests_of(const ChangePlan& plan) {
    std::vector<Request> requests;
    for (const Step& step : plan.steps) {
        if (step.action == Action::Keep) continue;
        const bool joins = !requests.empty() && is_setting(step) &&
                           is_setting(requests.back().back()) &&
                           requests.back().back().gpu == step.gpu;
        if (!joins) requests.emplace_back();
        Step& added = requests.back().emplace_back(step);
        if (added.action == Action::Create && added.to->uuid == Uuid{})
            added.to->uuid = make_uuid();
    }
    return requests;
}

std::string describe(const Step& step) {
    if (step.vf_count) return fmt::format("enable {} VFs of {}", step.vf_count->to, step.gpu);
    const VfSpec* vf = step.from ? &*step.from : step.to ? &*step.to : nullptr;
    return vf == nullptr
               ? fmt::format("{} {}", name_of(step.action), target_of(step))
               : fmt::format("{} {} '{}'", name_of(step.action), target_of(step), vf->name);
}

std::string describe(const Request& request) {
    if (request.size() == 1) return describe(request.front());
    return fmt::format("{} and {} more settings of {}", describe(request.front()),
                       request.size() - 1, request.front().gpu);
}

bool empties(const Request& request) {
    return request.front().action == Action::Create || request.front().action == Action::Resize;
}

bool is_loss(ErrorId id) {
    constexpr std::array kLosses{ErrorId::PfLost, ErrorId::DeviceLost, ErrorId::VersionMismatch};
    return std::find(kLosses.begin(), kLosses.end(), id) != kLosses.end();
}

bool is_temporary(ErrorId id) {
    return is_loss(id) || id == ErrorId::StateNotWritten;
}

bool is_setting(const Request& request) {
    return is_setting(request.front());
}

void StepExecutor::begin(Request request, const ApplyIntent& intent) {
    for (Step& step : request)
        if (step.owner && manager_.has_ended(step.gpu, *step.owner)) step.owner.reset();
    step_ = request.front();
    awaits_device_ = false;
    end_.reset();
    manager_.find_gpu(step_->gpu)
        ->ask<std::uint32_t>(
            [request, intent](GpuModel& model) { return carry_out(model, request, intent); },
            [this](Result<std::uint32_t> generation) { on_answer(std::move(generation)); });
}

void StepExecutor::on_answer(Result<std::uint32_t> generation) {
    if (!generation) {
        end_ = StepEnd{.result = tl::make_unexpected(generation.error()), .ended = Ended::AtOnce};
        return;
    }
    awaits_device_ = step_->action == Action::Resize || step_->action == Action::Destroy;
    if (!awaits_device_) end_ = StepEnd{.result = {}, .ended = Ended::AtOnce};
    generation_ = *generation;
    deadline_ = clock_.now() + kTimeout;
}

std::optional<StepEnd> StepExecutor::take_end() {
    if (!end_ && awaits_device_)
        if (auto result = outcome())
            end_ = StepEnd{.result = std::move(*result),
                           .ended = clock_.now() >= deadline_ ? Ended::Late : Ended::Afterwards};
    if (!end_) return {};
    step_.reset();
    return std::exchange(end_, std::nullopt);
}

/// The result of a resize or destroy, according to the snapshot; none if it is not over.
std::optional<Result<>> StepExecutor::outcome() const {
    const Step& step = *step_;
    const auto seen = manager_.find_gpu(step.gpu)->snapshot();
    const bool exists = seen->has_vf(step.vf);
    if (seen->gpu.state != GpuState::Ok)
        return fail(ErrorId::PfLost, fmt::format("{}: {}", step.gpu, seen->gpu.message));
    if (clock_.now() >= deadline_)
        return fail(
            ErrorId::TimedOut,
            fmt::format("{} is still being scrubbed after {} s", target_of(step),
                        std::chrono::duration_cast<std::chrono::seconds>(kTimeout).count()));
    if (step.action == Action::Destroy) {
        if (exists && seen->vfs.at(step.vf).active.generation == generation_) return {};
        return Result<>{};
    }
    const bool is_in_progress = exists && (seen->vf_state(step.vf) == VGPU_PF_VF_SCRUBBING ||
                                           seen->vfs.at(step.vf).record.next.has_value());
    if (is_in_progress) return {};
    return outcome_of_resize(*seen);
}

/// Compares recorded and requested resources. The record shows the result, because no resize is
/// pending now.
Result<> StepExecutor::outcome_of_resize(const GpuSnapshot& seen) const {
    const Step& step = *step_;
    const std::string target = target_of(step);
    if (!seen.has_vf(step.vf) || seen.vf_state(step.vf) == VGPU_PF_VF_ABSENT)
        return fail(ErrorId::PfRefused,
                    fmt::format("{} got neither its new nor its old resources", target));
    if (seen.vfs.at(step.vf).record.spec.resources == step.to->resources) return {};
    return fail(
        ErrorId::PfRefused,
        fmt::format("the PF driver refused the new resources of {}; the VF has its old ones",
                    target));
}

}  // namespace vgpu::daemon
