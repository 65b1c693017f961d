// SPDX-License-Identifier: MIT
#include "daemon/dbus/job_object.h"

#include "daemon/dbus/properties.h"

#include <fmt/format.h>

namespace vgpu::daemon::dbus {

namespace {

const InterfaceName kInterface{org::vgpu1::Job_adaptor::INTERFACE_NAME};

/// The names of the properties that differ. The other properties of a job do not change.
std::vector<PropertyName> differences(const JobView& before, const JobView& after) {
    std::vector<PropertyName> names;
    if (before.state != after.state) names.emplace_back("State");
    if (before.progress < after.progress || before.progress > after.progress)
        names.emplace_back("Progress");
    if (before.step != after.step) names.emplace_back("Step");
    if (before.error.has_value() != after.error.has_value() ||
        (before.error && before.error->cause != after.error->cause)) {
        names.emplace_back("Error");
        names.emplace_back("ErrorName");
    }
    if (before.plan != after.plan) names.emplace_back("Plan");
    if (before.report.has_value() != after.report.has_value()) names.emplace_back("Report");
    return names;
}

}  // namespace

sdbus::ObjectPath job_path(std::uint32_t id) {
    return sdbus::ObjectPath{fmt::format("/org/vgpu1/job/{}", id)};
}

const char* action_of_job(std::string_view kind) {
    const bool is_provisioning =
        kind == "apply" || kind == "recovery" || kind == kind_of(VfJob::Destroy);
    return is_provisioning ? kProvisionAction : kControlAction;
}

JobObject::JobObject(Context& context, JobView view)
    : AdaptorInterfaces(context.bus, job_path(view.id)), context_(context), view_(std::move(view)) {
    registerAdaptor();
    emitInterfacesAddedSignal({kInterface});
}

JobObject::~JobObject() {
    try {
        emitInterfacesRemovedSignal({kInterface});
    } catch (const sdbus::Error&) {
        // the bus is gone, so no listener is left
    }
    const daemon::Error gone{ErrorId::WrongState,
                             fmt::format("job {} is over and forgotten", view_.id)};
    calls_.end_all(context_.is_stopping ? stopping() : gone);
    unregisterAdaptor();
}

void JobObject::show(JobView view) {
    const std::vector<PropertyName> changed = differences(view_, view);
    view_ = std::move(view);
    if (!changed.empty()) emitPropertiesChangedSignal(kInterface, changed);
}

void JobObject::Cancel(sdbus::Result<>&& result, SentOptions options) {
    run_if_authorized(
        context_, {calls_, current_sender(getObject())}, action_of_job(view_.kind),
        std::move(result),
        [&jobs = context_.jobs, id = view_.id, values = options_of(options)](const Done<>& done) {
            if (const auto known = OptionReader(values).only({}); !known) return done(known);
            done(jobs.cancel(id));
        });
}

std::string JobObject::Error() {
    return view_.error ? text_of(*view_.error) : "";
}

std::map<std::string, sdbus::Variant> JobObject::Report() {
    return view_.report ? dict_of(*view_.report) : Dict{};
}

std::string JobObject::ErrorName() {
    return view_.error ? dbus_name_of(view_.error->id) : "";
}

}  // namespace vgpu::daemon::dbus
