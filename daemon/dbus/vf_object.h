// SPDX-License-Identifier: MIT
//
// VfObject: implements org.vgpu1.Vf at /org/vgpu1/gpu/ID/vf/N. Getters read the VF's newest VfView,
// or the last signalled VfView if the VF is gone or was recreated. Methods pass their options to
// Manager or Jobs. The class Objects makes VfObjects.
#pragma once

#include "daemon/dbus/context.h"

#include "vgpu1/vf_adaptor.h"

namespace vgpu::daemon::dbus {

/// Whether the constructor emits the signal InterfacesAdded.
enum class Signals { Emitted, Omitted };

/// Methods that change something require the polkit action org.vgpu1.provision, .assign or
/// .control. Methods with a JobResult may take long, so they start a job (VfRun) and reply with the
/// path of the job.
class VfObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Vf_adaptor, sdbus::Properties_adaptor,
                                      sdbus::ManagedObject_adaptor> {
public:
    /// `view`: as in the snapshot; the constructor calls add_domain_facts() on a copy.
    VfObject(Context& context, Target target, const VfView& view, Signals signals);
    ~VfObject();

    /// Signals the properties of kind SIGNALLED (vf_properties.def) that changed since the last
    /// call.
    void refresh();
    /// UUID of the VF. A VF that is recreated under this number has another UUID.
    [[nodiscard]] const daemon::Uuid& vf_uuid() const { return vf_uuid_; }

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;
    using JobResult = sdbus::Result<sdbus::ObjectPath>;

    void Set(sdbus::Result<>&& result, SentOptions options) override;
    void Destroy(JobResult&& result, SentOptions options) override;
    void Reset(JobResult&& result, SentOptions options) override;
    void Resume(JobResult&& result, SentOptions options) override;
    void ClearQuarantine(JobResult&& result, SentOptions options) override;
    void SelfTest(JobResult&& result, SentOptions options) override;
    void Quiesce(JobResult&& result, SentOptions options) override;
    void Thaw(JobResult&& result, SentOptions options) override;
    void Pause(sdbus::Result<>&& result, SentOptions options) override;
    void Stop(sdbus::Result<>&& result, SentOptions options) override;
    /// Replies with the generation of the claim when the claim is durable.
    void Claim(sdbus::Result<std::uint64_t>&& result, std::string owner,
               SentOptions options) override;
    void Release(sdbus::Result<>&& result, std::string owner, std::uint64_t generation,
                 SentOptions options) override;
    void control(vgpu_pf_control_action action, sdbus::Result<>&& result,
                 const SentOptions& options);
    void start(VfJob job, JobResult&& result, const SentOptions& options);

#define VF_PROPERTY(name, type, kind, value) type name() override;
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY

    /// Calls `value_of` with the newest view, or with the last signalled view if the VF is gone or
    /// was recreated.
    /// Copies the view only for properties that need complete().
    template <typename ValueOf> auto read(std::string_view name, const ValueOf& value_of) const {
        const auto seen = context_.manager.find_gpu(target_.gpu)->snapshot();
        const auto at = seen->vfs.find(target_.vf);
        const bool is_same_vf = at != seen->vfs.end() && at->second.record.spec.uuid == vf_uuid_;
        if (!is_same_vf) return value_of(signalled_);
        if (!is_completed(name)) return value_of(at->second);
        VfView whole = at->second;
        complete(context_, whole);
        return value_of(whole);
    }

    Context& context_;
    OpenCalls calls_;
    Target target_;
    daemon::Uuid vf_uuid_{};
    VfView signalled_;  ///< the values that listeners know from signals
};

}  // namespace vgpu::daemon::dbus
