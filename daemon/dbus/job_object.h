// SPDX-License-Identifier: MIT
//
// JobObject: implements org.vgpu1.Job at /org/vgpu1/job/ID from the last JobView. The class Objects
// makes and removes JobObjects.
#pragma once

#include "daemon/dbus/context.h"
#include "daemon/service/jobs/jobs.h"

#include "vgpu1/job_adaptor.h"

namespace vgpu::daemon::dbus {

/// The object path /org/vgpu1/job/ID.
sdbus::ObjectPath job_path(std::uint32_t id);
/// The polkit action that a job of this kind requires: provision for jobs that create or destroy
/// VFs, control for other jobs.
const char* action_of_job(std::string_view kind);

/// Cancel requires the same polkit action as the job itself (action_of_job()).
class JobObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Job_adaptor, sdbus::Properties_adaptor,
                                      sdbus::ManagedObject_adaptor> {
public:
    JobObject(Context& context, JobView view);
    ~JobObject();

    /// Replaces the shown view, and signals the properties that differ.
    void show(JobView view);

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;

    void Cancel(sdbus::Result<>&& result, SentOptions options) override;
    std::uint32_t Id() override { return view_.id; }
    std::string Kind() override { return view_.kind; }
    std::string State() override { return view_.state; }
    bool CanCancel() override { return view_.can_cancel; }
    double Progress() override { return view_.progress; }
    std::string Step() override { return view_.step; }
    std::string Error() override;
    std::string ErrorName() override;
    std::string Plan() override { return view_.plan; }
    std::map<std::string, sdbus::Variant> Report() override;

    Context& context_;
    OpenCalls calls_;
    JobView view_;
};

}  // namespace vgpu::daemon::dbus
