// SPDX-License-Identifier: MIT
//
// Objects: everything vgpud has on the bus. The manager object at /org/vgpu1 (org.vgpu1.Manager and
// ObjectManager), one object per GPU, one per VF in service; refresh() makes them follow the
// service: objects come and go, changed properties and notices are signalled. One thread: main.cpp
// calls step() after every turn of the loop.
#pragma once

#include "daemon/dbus/gpu_object.h"
#include "daemon/dbus/job_object.h"
#include "daemon/dbus/vf_object.h"

#include "vgpu1/manager_adaptor.h"

namespace vgpu::daemon::dbus {

/// Methods with an sdbus::Result answer later, from the main loop; the others answer at once from
/// what is known. Both throw sdbus::Error for options that are no options.
class ManagerObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Manager_adaptor, sdbus::ObjectManager_adaptor,
                                      sdbus::Properties_adaptor> {
public:
    explicit ManagerObject(Context& context);
    ~ManagerObject();

    void signal(const Notice& notice) {
        emitEvent(notice.gpu, notice.vf, std::string(notice.kind), notice.text);
    }
    void signal(const JobNews& news);

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;

    /// Wants org.vgpu1.provision; the path is on the bus when the reply comes.
    void CreateVf(sdbus::Result<sdbus::ObjectPath>&& result, std::string gpu,
                  SentOptions options) override;
    /// Free. One call for all, with counters no older than GpuModel::kFreshEnough if the GPU
    /// answers in time.
    std::vector<Dict> ListVfs(const SentOptions& options) override;
    Dict ListVfColumns(const SentOptions& options) override;
    std::vector<Dict> ListGpus(const SentOptions& options) override;
    sdbus::ObjectPath Resolve(const std::string& target, const SentOptions& options) override;
    std::vector<Dict> RecentEvents(const SentOptions& options) override;
    std::string GetMetrics(const SentOptions& options) override;
    /// Free, since nothing is changed, but counted as a request: it asks every GPU.
    void Plan(sdbus::Result<std::string>&& result, std::string config,
              SentOptions options) override;
    /// Wants org.vgpu1.provision; the reply is the job, which may still fail.
    void Apply(sdbus::Result<sdbus::ObjectPath>&& result, std::string config,
               SentOptions options) override;
    void Export(sdbus::Result<std::string>&& result, SentOptions options) override;
    void AutoConfig(sdbus::Result<std::string>&& result, SentOptions options) override;
    /// Assign, Grant, TakeBack and Adopt want org.vgpu1.assign.
    void Assign(sdbus::Result<std::vector<Dict>>&& result, std::string owner,
                std::vector<sdbus::Struct<std::string, std::string>> wanted,
                SentOptions options) override;
    void Grant(sdbus::Result<>&& result, std::string owner, std::uint32_t uid, std::uint32_t gid,
               SentOptions options) override;
    void TakeBack(sdbus::Result<std::uint32_t>&& result, std::string owner,
                  SentOptions options) override;
    void Adopt(sdbus::Result<std::uint32_t>&& result, std::string owner,
               SentOptions options) override;
    std::string Version() override;
    std::uint32_t ApiVersion() override;
    bool ReadOnly() override;
    std::string StateMessage() override;
    std::uint64_t StateGeneration() override;

    Context& context_;
    OpenCalls calls_;
};

/// Owns every object; the bus must outlive it.
class Objects {
public:
    /// Between two looks at all properties for news alone: GPUs may have a hundred a second.
    static constexpr Nanoseconds kInterval = std::chrono::milliseconds(20);

    Objects(sdbus::IConnection& bus, Manager& manager, Agents& agents, Jobs& jobs,
            Assignments& assignments, const Domains& domains, Callers& callers,
            Authority& authority, const Clock& clock, const EventLog& events, Metrics& metrics);
    ~Objects() { context_.is_stopping = true; }
    Objects(const Objects&) = delete;
    Objects& operator=(const Objects&) = delete;

    /// Makes the objects of all there is, without InterfacesAdded: to be called before the first
    /// request is taken, so that whoever asks finds them.
    void show_first();
    /// Some GPU has a new snapshot, or a job has come further.
    void note_news() { has_news_ = true; }
    /// Something else that objects show has changed: what libvirt tells of owners.
    void note_words() { has_news_ = has_words_ = true; }
    /// Signals what happened, answers who waits, reads one document; at most every kInterval looks
    /// at all properties.
    void step(const std::vector<Notice>& notices);
    [[nodiscard]] bool are_documents_waiting() const { return !backlog_.is_empty(); }
    /// When step() wants to look again, if wants_step().
    [[nodiscard]] Nanoseconds next_step() const {
        if (!backlog_.is_empty()) return Nanoseconds::zero();
        // what is waited for may show in a snapshot, which wakes the loop; or a time-out is over
        return has_news_ ? next_look() : looked_at_ + kInterval;
    }
    [[nodiscard]] bool wants_step() const {
        return has_news_ || !waiters_.is_empty() || !backlog_.is_empty();
    }

private:
    [[nodiscard]] Nanoseconds next_look() const { return refreshed_at_ + kInterval; }
    /// Objects come and go, then signals of what changed of these GPUs and their VFs.
    void refresh(const std::set<std::string>& gpus);
    /// The two halves of refresh(), of the GPUs that have changed: before each reply of a changing
    /// method, and after it.
    void follow_changed();
    void tell_followed();
    void tell_changes(const std::set<std::string>& gpus);
    [[nodiscard]] std::set<std::string> all_gpus() const;
    [[nodiscard]] std::set<std::string> changed_gpus(const std::vector<Notice>& notices);
    /// Objects come and go with the snapshots; each tells so by InterfacesAdded and
    /// InterfacesRemoved.
    void follow_vfs(const std::set<std::string>& gpus, Telling telling = Telling::Aloud);
    void follow_jobs();
    /// Of jobs that have none yet.
    void make_job_objects(const std::vector<JobView>& views);
    using VfObjects = std::map<Target, std::unique_ptr<VfObject>>;
    /// Objects of one GPU's VFs stand together.
    [[nodiscard]] VfObjects::iterator first_vf_of(const std::string& gpu) {
        return vfs_.lower_bound(Target{.gpu = gpu, .vf = 0});
    }
    [[nodiscard]] bool is_of(VfObjects::iterator at, const std::string& gpu) {
        return at != vfs_.end() && at->first.gpu == gpu;
    }

    /// Before context_, which refers to it.
    Waiters waiters_;
    Backlog backlog_;
    Admission admission_;
    Context context_;
    ManagerObject manager_;
    std::vector<std::unique_ptr<GpuObject>> gpus_;
    VfObjects vfs_;
    std::map<std::uint32_t, std::unique_ptr<JobObject>> jobs_;
    /// What changed_gpus() saw last, by GPU.
    std::map<std::string, std::shared_ptr<const GpuSnapshot>> snapshots_;
    std::set<std::string> followed_;  ///< GPUs whose changes are still to be told
    Nanoseconds refreshed_at_{0};
    Nanoseconds looked_at_{0};  ///< last step()
    bool has_news_ = false;
    bool has_words_ = false;
};

}  // namespace vgpu::daemon::dbus
