// SPDX-License-Identifier: MIT
//
// Objects: owns vgpud's objects on the bus, except the LogControlObject. These are the manager at
// /org/vgpu1 (org.vgpu1.Manager, ObjectManager), and one object for each GPU, each VF with
// resources or a record, and each job. main.cpp calls step() in every iteration of the main loop;
// step() makes and removes objects and signals changed properties.
#pragma once

#include "daemon/dbus/gpu_object.h"
#include "daemon/dbus/job_object.h"
#include "daemon/dbus/vf_object.h"
#include "daemon/service/owners/vf_capacity.h"

#include "vgpu1/manager_adaptor.h"

namespace vgpu::daemon::dbus {

/// A method with a parameter sdbus::Result may reply later; other methods reply when they return. A
/// method may throw sdbus::Error to refuse a call at once.
class ManagerObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Manager_adaptor, sdbus::ObjectManager_adaptor,
                                      sdbus::Properties_adaptor> {
public:
    explicit ManagerObject(Context& context);
    ~ManagerObject();

    void signal(const AdminEvent& admin_event) {
        emitEvent(admin_event.gpu, admin_event.vf, std::string(name_of(admin_event.kind)),
                  admin_event.text);
    }
    void signal(const JobEvent& event);
    /// Signals CapacityCounter if the capacity has changed since the last call.
    void refresh();

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;

    /// Requires org.vgpu1.provision. The object of the VF exists before the reply.
    void CreateVf(sdbus::Result<sdbus::ObjectPath>&& result, std::string gpu,
                  SentOptions options) override;
    // Methods that only read need no authorisation. ListVfs, ListGpus and Capacity wait up to 20 ms
    // for fresh values.
    Dict ListVfs(const SentOptions& options) override;
    std::vector<Dict> ListGpus(const SentOptions& options) override;
    std::vector<Dict> Capacity(const SentOptions& options) override;
    sdbus::ObjectPath Resolve(const std::string& target, const SentOptions& options) override;
    std::vector<Dict> RecentEvents(const SentOptions& options) override;
    // Plan, Export and AutoConfig need no authorisation, but count as open requests, because they
    // wait for the GPUs' threads.
    void Plan(sdbus::Result<std::string>&& result, std::string config,
              SentOptions options) override;
    /// Requires org.vgpu1.provision. Replies with the path of a new job, which may still fail.
    void Apply(sdbus::Result<sdbus::ObjectPath>&& result, std::string config,
               SentOptions options) override;
    void Export(sdbus::Result<std::string>&& result, SentOptions options) override;
    void AutoConfig(sdbus::Result<std::string>&& result, SentOptions options) override;
    // Assign, Grant, Unassign and Adopt require org.vgpu1.assign.
    void Assign(sdbus::Result<std::vector<Dict>>&& result, std::string owner,
                std::vector<sdbus::Struct<std::string, std::string>> selectors,
                SentOptions options) override;
    void Grant(sdbus::Result<>&& result, std::string owner, std::uint32_t uid, std::uint32_t gid,
               SentOptions options) override;
    void Unassign(sdbus::Result<std::uint32_t>&& result, std::string owner,
                  SentOptions options) override;
    void Adopt(sdbus::Result<std::uint32_t>&& result, std::string owner,
               SentOptions options) override;
    std::uint64_t CapacityCounter() override;
    std::string Version() override;
    std::uint32_t ApiVersion() override;
    bool ReadOnly() override;
    std::string StateMessage() override;
    std::uint64_t StateGeneration() override;

    Context& context_;
    OpenCalls calls_;
    daemon::CapacityCounter capacity_;
    std::uint64_t signalled_capacity_ = 0;  ///< last count that refresh() saw
};

/// All objects that the constructor gets must outlive the Objects.
class Objects {
public:
    /// Minimum time between two checks for changes, unless an event or a reply requires a check
    /// earlier. A GPU may publish 100 snapshots per second.
    static constexpr Nanoseconds kInterval = std::chrono::milliseconds(20);

    Objects(sdbus::IConnection& bus, Manager& manager, Agents& agents, Jobs& jobs,
            Assignments& assignments, const Domains& domains, PeerCredentials& peer_credentials,
            Authority& authority, const Clock& clock, const EventLog& events);
    ~Objects() { context_.is_stopping = true; }
    Objects(const Objects&) = delete;
    Objects& operator=(const Objects&) = delete;

    /// Makes objects for the VFs and jobs that exist when vgpud starts. Signals no InterfacesAdded
    /// for these VFs. Call it before the first request is handled.
    void show_first();
    /// Call it when a GPU has a new snapshot or a job has made progress.
    void record_change() { has_changes_ = true; }
    /// Call it when libvirt has reported something new about owners.
    void record_domain_changes() { has_changes_ = has_domain_changes_ = true; }
    /// Checks for changes (at once if there are `admin_events`, otherwise at most every kInterval),
    /// signals `admin_events`, and does one piece of deferred work.
    void step(const std::vector<AdminEvent>& admin_events);
    /// True if deferred work, such as parsing a document, waits for step().
    [[nodiscard]] bool are_documents_waiting() const { return !deferred_.is_empty(); }
    /// When to call step() again if needs_step(): a time of the constructor's Clock, or zero for at
    /// once.
    [[nodiscard]] Nanoseconds next_step() const {
        return deferred_.is_empty() ? next_refresh() : Nanoseconds::zero();
    }
    [[nodiscard]] bool needs_step() const { return has_changes_ || !deferred_.is_empty(); }

private:
    [[nodiscard]] Nanoseconds next_refresh() const { return refreshed_at_ + kInterval; }
    /// Makes and removes VF objects of `gpus` and signals changed properties. Then does the same
    /// for jobs, and signals new and ended jobs.
    void refresh(const std::set<std::string>& gpus);
    /// The first half of refresh(), before the reply of a method that changes something.
    void update_before_reply();
    /// The second half of refresh(), after that reply.
    void signal_after_reply();
    void emit_changes(const std::set<std::string>& gpus);
    [[nodiscard]] std::set<std::string> all_gpus() const;
    [[nodiscard]] std::set<std::string> changed_gpus(const std::vector<AdminEvent>& admin_events);
    /// Makes and removes VF objects so that they match the snapshots. Signals InterfacesRemoved
    /// and, unless omitted, InterfacesAdded.
    void update_vf_objects(const std::set<std::string>& gpus, Signals signals = Signals::Emitted);
    void update_and_signal_jobs();
    void make_job_objects(const std::vector<JobView>& views);
    using VfObjects = std::map<Target, std::unique_ptr<VfObject>>;
    /// The VFs of one GPU are next to each other in the map.
    [[nodiscard]] VfObjects::iterator first_vf_of(const std::string& gpu) {
        return vfs_.lower_bound(Target{.gpu = gpu, .vf = 0});
    }
    [[nodiscard]] bool is_vf_of(VfObjects::iterator at, const std::string& gpu) {
        return at != vfs_.end() && at->first.gpu == gpu;
    }

    /// deferred_ and request_limits_ are declared before context_, which refers to them.
    DeferredWork deferred_;
    RequestLimits request_limits_;
    Context context_;
    ManagerObject manager_;
    std::vector<std::unique_ptr<GpuObject>> gpus_;
    VfObjects vfs_;
    std::map<std::uint32_t, std::unique_ptr<JobObject>> jobs_;
    /// Snapshots last seen by changed_gpus(), by GPU.
    std::map<std::string, std::shared_ptr<const GpuSnapshot>> snapshots_;
    std::set<std::string> unsignalled_gpus_;  ///< GPUs whose changes are not signalled yet
    Nanoseconds refreshed_at_{0};
    bool has_changes_ = false;
    bool has_domain_changes_ = false;
};

}  // namespace vgpu::daemon::dbus
