// SPDX-License-Identifier: MIT
//
// GpuModel: runs one GPU. Keeps three things consistent: the PF core's state (GET_INFO, GET_VF,
// events), the operator's records (StateStore) and time slicing (GpuSchedule). In this folder, "PF
// core" also stands for a vendor's driver; Backend is the interface to both (backend/backend.h).
//   attach:   connect, acquire the lease (the right to set run tables), adopt VFs in service,
//             recreate missing VFs
//   step:     read events, finish scrubs, install run tables, notice the loss of the PF core
//   requests: check the request, make changes of the record durable, then request the change from
//             the PF core; step() does the rest
//
// create() makes the record durable, then sends PROVISION (an operation of the uapi, as the other
// names in capitals); step() installs the new run table. destroy() makes the record durable, then
// sends RELEASE. When the scrub has ended, step() makes its end durable, then sends SCRUB_DURABLE.
// After a crash at any point, the next vgpud continues.
//
// Calls may block until the PF core answers. Once the GPU's thread runs (host.h), this thread makes
// all calls except interrupt().
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/ports/assignment_port.h"
#include "daemon/ports/clock.h"
#include "daemon/ports/owner_port.h"
#include "daemon/service/gpu/durable_record.h"
#include "daemon/service/gpu/managed_processes.h"
#include "daemon/service/gpu/pf_link.h"
#include "daemon/service/gpu/reconcile.h"
#include "daemon/service/gpu/vf_table.h"
#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/slicing/wait_account.h"
#include "daemon/service/state/store.h"
#include "daemon/service/trace/recorder.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/settings.h"
#include "daemon/service/views/event_fold.h"
#include "daemon/service/views/views.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace vgpu::daemon {

/// A VF as an operator requests it. Manager and parse_configuration() check types and ranges;
/// create() checks values that depend on the device.
struct CreateRequest {
    /// An empty name stands for "<gpu>-vf<n>". VRAM: a multiple of the device's unit; 0: an equal
    /// part of the free VRAM (vram_for()) or, if sizes cannot be chosen, the driver's size. The
    /// UUID is zero for a new VF, and set for a VF that is recreated.
    VfSpec spec{};
    std::uint32_t vf = 0;  ///< 0: any free number, see free_vf()
    OwnerRecord owner{};   ///< owner of a VF that is recreated; an empty name: none
};

/// Whether a request may disturb users of VFs. With No, a request fails with WrongState if a client
/// would lose its open VF or the engine, and with Claimed if another owner would lose its work. A
/// request that needs all VFs of the GPU idle fails with VfsInUse instead.
enum class Force { No, Yes };

/// How much to read again from the PF core.
enum class Freshness {
    Events,    ///< only what events report
    Gpu,       ///< as Events, and the GPU's state and counters
    Counters,  ///< as Gpu, and the counters of all VFs
};
/// Number of values of Freshness.
inline constexpr std::size_t kFreshnesses = 3;

/// Who requests a change, and whether with force.
struct Requester {
    std::string owner{};  ///< owner on whose behalf the change is requested; empty: nobody
    Force force = Force::No;
};

/// Changes of a GPU and of its VFs, by VF number. GpuModel checks these changes together, and
/// writes all of them to the record at once.
struct Settings {
    GpuChange gpu{};
    std::map<std::uint32_t, VfChange> vfs{};
    Force force = Force::No;  ///< for changes that require idle VFs, such as the assignment mode
};

/// What GpuModel::release() does with the VF.
enum class AfterRelease {
    Keep,          ///< scrub the VRAM only if the VF's assignment policy requires it
    Scrub,         ///< scrub the VRAM before the next claim
    OwnerStopped,  ///< as Scrub, but a persistent claim stays (outlives_stops() in ownership.h)
};

/// Errors of all requests: StateReadOnly, StateNewer, VersionMismatch, PfLost or DeviceLost while
/// the GPU takes no requests; NoSuchVf for a VF without resources and record; StateNotWritten if
/// the disk refuses; PfRefused if the PF core refuses; DriverBusy while an earlier access to a
/// vendor's driver hangs. A failed request leaves record and device unchanged, unless the PF core
/// is lost during the request, a rollback fails, or the function's comment says otherwise. If the
/// disk refuses to restore the record after a failure, the event "record-left" reports that, and
/// step() repeats the write. If the former assignment mode cannot be restored, the event
/// "assignment-mode-failed" reports that.
class GpuModel {
public:
    /// Delay before the first attempt to attach again. Each failed attempt doubles the delay.
    static constexpr Nanoseconds kFirstRetry = std::chrono::milliseconds(20);
    /// Limit of the delay between attempts to attach.
    static constexpr Nanoseconds kLongestRetry = std::chrono::seconds(2);
    /// Time between two reads of the GPU and all VFs, for values that no event reports. Also the
    /// delay after which a refused write of the record, or a refused release for a scrub, is tried
    /// again.
    static constexpr Nanoseconds kRefresh = std::chrono::seconds(1);
    /// refresh() reads values again only if they are at least this old.
    static constexpr Nanoseconds kFreshness = std::chrono::milliseconds(100);
    /// Time between two attempts to give a VF its defined resources (restore_missing()), or to
    /// restart a scrub that has failed (retry_scrubs()).
    static constexpr Nanoseconds kRestoreRetry = std::chrono::seconds(5);
    /// Minimum time between two log lines about impossible events: events of the PF core whose
    /// numbers cannot be true, such as a VF number above total_vfs.
    static constexpr Nanoseconds kImpossiblePause = std::chrono::minutes(1);
    /// Time between two searches for orphans (find_orphans()). A search reads all of /proc if an
    /// owner is a VM.
    static constexpr Nanoseconds kOwnerCheck = std::chrono::seconds(10);
    /// If the end of a claim requires a scrub, vgpud waits at most this long for the client to
    /// close the VF. Then vgpud takes the VF from the client, and the scrub begins. Long enough for
    /// the device to notice that a client died.
    static constexpr Nanoseconds kDetachTimeout = std::chrono::seconds(5);

    /// `store`, `clock` and `owners` must outlive the model.
    struct Ports {
        std::unique_ptr<Backend> backend;
        /// Null: vgpud does not start the GPU's processes.
        std::unique_ptr<ManagedProcesses> managed_processes;
        StateStore& store;
        const Clock& clock;
        const OwnerPort* owners = nullptr;  ///< null: nothing is known about owners
        std::unique_ptr<AssignmentPort>
            assignment_mode{};  ///< null: the platform decides for every VF
    };

    GpuModel(const GpuConfig& config, GpuPaths paths, Ports ports);

    /// Does all work that is due. Blocks until the PF core answers; the backend limits the time of
    /// each request. Order: processes, connection, events, finished scrubs, counters, required
    /// scrubs, missing VFs, owners. The run table is last, because the earlier work may change
    /// which VFs the table must have.
    void step();
    /// The time (of Clock) at which step() is due even if no descriptor becomes readable.
    [[nodiscard]] Nanoseconds wake_at() const;
    /// Descriptors that become readable when step() has work; ignore entries of -1.
    [[nodiscard]] std::vector<int> wait_fds() const;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] GpuState state() const { return state_; }

    /// Creates a VF and returns its number. Fails as check_capacity() and admit() (capacity.h),
    /// with NoVram or NoFreeVf if too little is free now, with VfsInUse if the driver needs idle
    /// VFs, or as AssignmentPort::set(). Makes the record durable first, so that after a crash the
    /// next vgpud creates the VF.
    Result<std::uint32_t> create(const CreateRequest& request);
    /// Destroys a VF. `by`: as Requester::owner. Returns when the PF core has begun the release;
    /// step() does the rest. Succeeds if the VF is already being destroyed. For a VF without
    /// resources, only erases the record.
    Result<> destroy(std::uint32_t vf, Force force, const std::string& by = "");
    /// Reads the VF and checks that the VF on record and in service under this number has this
    /// UUID. WrongState if another VF has the number. A plan names the VF of a step by UUID; the
    /// requests take the number, by which an operator may also destroy a VF of another program.
    Result<> check_vf(std::uint32_t vf, const Uuid& uuid);
    /// Changes the settings and the name of a VF. `requester` matters only if the driver requires
    /// an idle VF or GPU for the change, as for the assignment mode.
    Result<> change(std::uint32_t vf, const VfChange& change, const Requester& requester = {});
    /// Pauses, resumes, stops or resets a VF, or ends its quarantine. Not recorded, because the PF
    /// core keeps the states of VFs. Fails with NotOffered or Observed, or with WrongState for a VF
    /// without resources, and for the resume or reset of a VF in quarantine. Without force, also
    /// fails with WrongState for the pause or stop of an open VF, and with Claimed for the reset of
    /// a VF of an owner other than `by` whose lease is not over.
    Result<> control(std::uint32_t vf, vgpu_pf_control_action action, Force force,
                     const std::string& by = "");
    /// Claims a VF and returns the generation of the claim in force. The claim is then durable, so
    /// that no VF gets two owners. Fails with Claimed, StaleClaim or InvalidOwner, or with
    /// WrongState if the VF has no resources, is not as defined, is being destroyed or resized, or
    /// must be scrubbed first. If another owner's lease is over and
    /// VfAssignmentPolicy::scrubs_on_release is set, ends that owner's claim, requires a scrub, and
    /// fails with WrongState.
    Result<std::uint64_t> claim(std::uint32_t vf, const ClaimRequest& request);
    /// Ends a claim; succeeds if there is no claim. One write records the end of the claim and the
    /// required scrub (VfNext::needs_scrub), so that no owner can claim the VF before the scrub.
    /// StaleClaim if the claim in force has another generation; Claimed if it has another owner;
    /// InvalidOwner as check_owner_name().
    Result<> release(std::uint32_t vf, const std::string& owner, std::uint64_t generation,
                     AfterRelease after = AfterRelease::Keep);
    /// Changes the GPU's own settings. Fails as admit() and check_settings() (capacity.h), or with
    /// VfsInUse.
    Result<> change_gpu(const GpuChange& change);
    /// Reads the GPU and each of vfs() from the PF core now. For plans; lists use view(), which is
    /// faster.
    Result<GpuInventory> inventory();
    /// Makes many changes with one write of the record, so that after a crash all of them are made
    /// or none.
    Result<> configure(const Settings& settings);
    /// Changes the resources of a VF, which scrubs its VRAM. Continues in step(), until
    /// VfRecord::next is empty; VfRecord::spec then shows the result: new or old resources. For a
    /// VF without resources, changes the definition, and tries at once to provision the VF.
    Result<> resize(std::uint32_t vf, const VfResources& resources, Force force);
    /// Enables VFs 1 to `count.to`, unless they are enabled. If any VFs are enabled, the driver
    /// first disables all of them, and they lose the content of their VRAM. Fails with NotOffered
    /// or Observed, or with VfsInUse if a VF is open, belongs to a running domain or is one of
    /// GpuFacts::other_users. Without force, VfsInUse also if a VF has any other owner whose lease
    /// is not over. A failure may leave VFs disabled; step() then tries to recreate these VFs. If
    /// `to` < `from`, rolls back an earlier call: frees the VRAM of the VFs in `count.vram_bytes`
    /// that were not created. These VFs stay enabled.
    Result<> enable_vfs(const VfCount& count, Force force);
    /// Writes the PF core's diagnostic dump to `fd`; the caller closes `fd`.
    Result<> dump(int fd);
    /// The recording of recent scheduling decisions from the byte offset `after` on; none: from the
    /// oldest recorded byte (trace/recorder.h).
    [[nodiscard]] Result<trace::Piece> trace(std::optional<std::uint64_t> after) const {
        return schedule_.read(after);
    }

    /// Reads again what `desired` names, or everything if the driver reports no events. Reads
    /// nothing if the GPU and all VFs were read less than kFreshness ago.
    void refresh(Freshness desired);
    /// Reads the VF, then the GPU, even if both were read a moment ago. Fails with NoSuchVf, with
    /// PfLost, DeviceLost or VersionMismatch, or with the error of the read.
    Result<> refresh_now(std::uint32_t vf);

    /// Numbers of the VFs in vfs_ (vf_table.h); none before the first attach.
    [[nodiscard]] std::vector<std::uint32_t> vfs() const;
    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return vfs_.contains(vf); }
    /// `vf`: one of vfs(). Does not ask the PF core.
    [[nodiscard]] VfView view(std::uint32_t vf);
    /// Only for a GPU whose driver has run tables.
    [[nodiscard]] VfTiming timing(std::uint32_t vf);
    [[nodiscard]] GpuView view();

    /// VRAM that a new VF could get now, in bytes.
    [[nodiscard]] std::uint64_t vram_available() const;

    /// The newest table known to be in the PF core; null if none was read or set yet.
    [[nodiscard]] std::shared_ptr<const vgpu_pf_run_table> table() const { return table_; }
    [[nodiscard]] bool is_connected() const { return pf_.is_connected(); }
    /// When the last refresh_all() that could read the GPU began; none: never.
    [[nodiscard]] std::optional<Nanoseconds> checked_at() const { return checked_at_; }
    /// The event ring of the PF core; null while not connected, or if the driver reports no events.
    [[nodiscard]] std::shared_ptr<const EventPort> events() const { return events_; }
    /// All events with smaller sequence numbers are read. 0 while the schedule lacks changes of the
    /// records, so that no snapshot counts as current (GpuSnapshot::is_current()).
    [[nodiscard]] std::uint64_t events_read_to() const {
        return are_members_stale_ ? 0 : events_read_to_;
    }

    /// `clashes`: by VF number, why the name does not identify the VF. Shown as the VF's condition,
    /// unless the VF has another condition.
    void set_name_clashes(std::map<std::uint32_t, std::string> clashes) {
        name_clashes_ = std::move(clashes);
    }

    /// The VF of the last successful change(); none if there was none since the last call. change()
    /// changes no other VF, so GpuHost then makes a new view of this VF only.
    [[nodiscard]] std::optional<std::uint32_t> take_only_changed_vf() {
        return std::exchange(only_changed_vf_, std::nullopt);
    }
    /// True if a record has changed since the schedule got its members. The next step() may then
    /// install a new run table.
    [[nodiscard]] bool may_need_table() const { return are_members_stale_; }

    [[nodiscard]] bool has_admin_events() const { return !admin_events_.empty(); }
    /// The events since the last call, oldest first; at most kMaxAdminEvents, further ones are
    /// dropped.
    std::vector<AdminEvent> take_admin_events();

    /// Ends a wait for the PF core. Any thread may call it.
    void interrupt() { pf_.interrupt(); }

private:
    // attaching and losing (attach.cpp)
    void try_attach(Nanoseconds now);
    /// After a failure, try_attach() restores vfs_ and calls lose().
    Result<> attach(Nanoseconds now);
    /// Reads all VFs. Later RUN events add to the service counters that were read.
    Result<> read_all_vfs();
    /// Reconciles the records with the PF core (reconcile.h): unknown VFs get a record, missing VFs
    /// are recreated.
    Result<> adopt_vfs();
    Result<> adopt_vf(std::uint32_t vf, GpuRecord& record);
    void report_found(const VfRecord& found);
    Result<> continue_release(VfRecord& record, Vf& one);
    Result<> cancel_release(VfRecord& record, const Error& refusal);
    Result<> forget_record(std::uint32_t vf, GpuRecord& record);
    Result<> scrub_absent(const VfRecord& record);
    Result<> scrub_if_required(const VfRecord& desired);
    /// Uses a VF's record only if the UUID matches, because another VF may have the number now.
    [[nodiscard]] VfRecord record_for(const VfFacts& active, const GpuRecord& record) const;
    Result<> recreate(const VfRecord& desired);
    /// Fails only if the PF core is lost. If the PF core refuses, the VF stays without resources
    /// and shows the reason (show_unrestored()).
    Result<> restore_vf(const VfRecord& desired);
    Result<> provision(const VfRecord& desired);
    /// Closes the connection and delays the next attempt to attach. Keeps vfs_ until attach() reads
    /// the VFs again, because the VFs continue to compute.
    void lose(const Error& error, Nanoseconds now);
    Result<> read_info();
    /// Sets the counted service of `one` to the PF core's counters. RUN events add to the result.
    static void sync_counted_service(Vf& one);
    void notice_device_state();
    void enter_state(GpuState state, std::string message);

    // VFs that are not in service as defined (restore.cpp)
    /// Why the VF is not as defined; empty if the VF is as defined, or if no reason is known yet.
    [[nodiscard]] std::string condition(std::uint32_t vf) const;
    [[nodiscard]] std::size_t count_vfs_with_problems() const;
    /// True if the VF in service under this number is not the VF on record.
    [[nodiscard]] bool is_replaced(std::uint32_t vf) const;
    void record_refusal(std::uint32_t vf, std::string text);
    /// Keeps a VF without resources in vfs_, so that its number stays reserved.
    void show_unrestored(const VfRecord& desired, std::string why);
    void show_absent(const VfRecord& desired);
    void reset_vf(const VfRecord& desired);
    void record_absent(const VfFacts& absent);
    /// Recreates VFs without resources: every kRestoreRetry and, for example after a scrub, at once
    /// (restore_at_).
    void restore_missing(Nanoseconds now);
    Result<> forget_definition(std::uint32_t vf);
    /// Defines other resources for a VF that has none now, and tries at once to provision the VF.
    /// Success: the definition is durable, even if the PF core has refused the resources.
    Result<> redefine(std::uint32_t vf, const VfResources& resources);
    [[nodiscard]] std::string state_text() const;
    /// WrongState, with the reason, while the VF has a record but no resources.
    [[nodiscard]] Result<> check_in_service(std::uint32_t vf) const;
    /// WrongState if the VF in service under this number is not as defined. Success if no VF is in
    /// service under this number.
    [[nodiscard]] Result<> check_defined(std::uint32_t vf) const;

    // assignment of functions (assignment_mode.cpp)
    Result<> apply_settings(const GpuRecord& before, const GpuRecord& after,
                            const Requester& requester);
    /// Checks the GPU's settings (check_settings()), and that the VFs are as idle as the driver
    /// requires for the changes. Else VfsInUse, WrongState or Claimed.
    [[nodiscard]] Result<> check_needs(const GpuRecord& before, const GpuRecord& after,
                                       const Requester& requester) const;
    Result<> change_assignment_modes(const GpuRecord& before, const GpuRecord& after, Force force);
    Result<> set_assignment_mode(std::uint32_t vf, AssignmentMode assignment_mode,
                                 TakeFromHost take = TakeFromHost::No);
    void reset_assignment_mode(const VfRecord& record);
    void read_assignment_mode(Vf& one);
    void check_assignment_modes();
    /// Call it while another mode than the defined one is in force. True while libvirt may have
    /// bound the function for a domain (managed='yes'); vgpud must not unbind the function then.
    [[nodiscard]] bool may_be_libvirts(Vf& one);

    // owners (owners.cpp)
    [[nodiscard]] std::string describe_name(std::uint32_t vf) const;
    [[nodiscard]] Result<> check_owner(std::uint32_t vf, std::string_view verb, Force force,
                                       const std::string& by) const;
    void require_scrub(VfRecord& record) const;
    void scrub_released(Nanoseconds now);
    void retry_scrubs(Nanoseconds now);
    [[nodiscard]] Result<> begin_scrub(std::uint32_t vf);
    tl::unexpected<Error> scrub_before_claim(std::uint32_t vf, GpuRecord record,
                                             const OwnerRecord& before);
    /// Numbers of the VFs whose owner is a domain that runs or may be about to start. Empty unless
    /// the driver changes the number of VFs only while all VFs are idle.
    [[nodiscard]] std::set<std::uint32_t> vfs_of_running_domains() const;
    /// True if `owner` is a domain that runs or may be about to start.
    [[nodiscard]] bool has_running_domain(const OwnerRecord& owner) const;
    /// Emits events and sets Vf::orphan; never ends a claim.
    void find_orphans(Nanoseconds now);
    void probe_owner(Vf& one, std::optional<bool> exists, Nanoseconds now);

    // events (events.cpp)
    /// Reads events, up to a limit. Then reads each VF in dirty_ once.
    void read_events(Nanoseconds now);
    void on_event(const vgpu_pf_event& event, Nanoseconds now);
    void on_run(const vgpu_pf_event& event, Nanoseconds now);
    /// Logs an impossible event (see kImpossiblePause), or only counts it if the last log line is
    /// less than kImpossiblePause old.
    void record_impossible(const vgpu_pf_event& event, Nanoseconds now);
    void on_lost_events(std::uint64_t count);
    /// While vgpud holds the lease, writes to the PF's sysfs files arrive as events. vgpud handles
    /// these writes like D-Bus requests: it checks them and makes them durable.
    void handle_policy_events();
    Result<> apply_policy(const vgpu_pf_event& policy, std::uint32_t vf);
    void count_missed_service();
    void on_wake(const vgpu_pf_event& event, Nanoseconds now);
    void record_wake(std::uint32_t vf, Nanoseconds at);
    void record_idle(std::uint32_t vf, Nanoseconds at);
    void record_inactive_idle(std::uint32_t vf, Nanoseconds at);
    void record_throttled(std::uint32_t vf, Nanoseconds at);
    void record_event(const vgpu_pf_event& event);
    /// Records finished scrubs. If the disk or the PF core refuses, a later step tries again.
    void finish_scrubs(Nanoseconds now);
    Result<> finish_scrub(std::uint32_t vf, std::uint32_t generation);
    void refresh(std::uint32_t vf);
    Result<> read_vf(std::uint32_t vf);
    /// Calls Backend::get_vf(), and limits the counters, because another program measures them.
    Result<VfFacts> ask_vf(std::uint32_t vf);
    /// Sets Vf::scrubbed if the VF is SCRUBBING and its scrub is over (Backend::check_scrubbed()).
    /// If the check fails, sets Vf::may_be_scrubbed, so that the next read of the VF checks again.
    /// Call it if the event SCRUBBED may have been missed, or if the driver reports no events.
    void record_scrub(Vf& one);
    Result<> check_gpu();
    void refresh_all(Nanoseconds now);
    void refresh_members(Nanoseconds now);
    void mark_formerly_strict(const std::vector<GpuSchedule::Member>& members);
    [[nodiscard]] bool may_plan() const;
    /// Done last in each step, because the table depends on everything that was read.
    void install_table(Nanoseconds now);
    /// Like install_table(), for a driver without run tables.
    void set_shares();
    /// Emits the notices of the backend as events.
    void report_notices();
    void record_table_condition(std::string condition);
    void make_refresh_due();

    // requests (requests.cpp)
    /// Success if the GPU accepts requests now. Else the first of these errors that applies: the
    /// store's, VersionMismatch, PfLost, DeviceLost.
    [[nodiscard]] Result<> check_usable() const;
    /// As check_usable(), for requests that change no record.
    [[nodiscard]] Result<> check_in_reach() const;
    /// NoSuchVf unless the VF is in vfs_.
    [[nodiscard]] Result<> check_known(std::uint32_t vf) const;
    /// Reads the VF again, before a request records anything. Fails as check_usable() and
    /// check_known().
    Result<> refresh_before_change(std::uint32_t vf);
    [[nodiscard]] Result<> check_attached(std::uint32_t vf, std::string_view verb,
                                          Force force) const;
    /// Fails if the driver cannot create the VF now.
    [[nodiscard]] Result<> check_new(const VfRecord& desired) const;
    /// VfsInUse if the change needs all VFs idle and some VF is in use. Force overrides owners, but
    /// not clients, running domains or GpuFacts::other_users. `whose`: for messages.
    [[nodiscard]] Result<> check_all_idle(Need need, std::string_view whose,
                                          const Requester& requester) const;
    /// Path of the VF's socket; empty if the directory of the sockets is not known.
    [[nodiscard]] std::string socket_of(std::uint32_t vf) const;
    /// The client of an attached VF; empty if unknown.
    [[nodiscard]] std::string client_of(std::uint32_t vf) const;
    [[nodiscard]] bool is_recreated(std::uint32_t vf) const;
    Result<> cancel_recreate(std::uint32_t vf);
    /// Rolls back the record of a VF that the PF core did not provision.
    void undo_create(const VfRecord& desired, const GpuRecord& before);
    [[nodiscard]] Result<std::uint32_t> free_vf();
    [[nodiscard]] Result<std::uint32_t> vf_for(const CreateRequest& request);
    [[nodiscard]] Result<std::uint64_t> vram_for(const CreateRequest& request) const;
    [[nodiscard]] Result<> check_room(const VfSpec& desired) const;
    /// The limits of the GPU. vram_bytes is only the free VRAM, and the list of VFs is empty.
    [[nodiscard]] GpuInventory capacity() const;
    /// Fails as daemon::admit(). Paused VFs count, because a resume is not checked.
    [[nodiscard]] Result<> admit(const GpuRecord& record) const;
    /// Erases the VF and its accounts, because another VF may get the number.
    void forget(std::uint32_t vf);

    // plans (configure.cpp)
    /// For GpuInventory::used_numbers.
    [[nodiscard]] Result<std::set<std::uint32_t>> used_numbers(const GpuRecord& record);
    /// Provisions a VF that has VfRecord::next and no resources. Fails only if the PF core is lost.
    Result<> finish_resize(std::uint32_t vf);
    /// If `record` of a VF in service has a pending change of resources: ends the change in
    /// `record`, or keeps only the required scrub.
    void resolve_next(VfRecord& record, const VfFacts& active) const;

    // the number of VFs (vf_count.cpp)
    void show_lost_vfs(const Error& cause);
    Result<> discard_new_vfs(const VfCount& count);
    [[nodiscard]] Result<> check_growth(std::uint32_t count) const;
    /// Enables the VFs on record that do not exist, all at once, because each change of the number
    /// of VFs disables all of them.
    void enable_recorded_vfs();

    // the record (gpu.cpp)
    /// Makes `after` durable, then calls show(). A failure changes nothing.
    Result<> commit(const GpuRecord& after);
    /// Calls show() with `after`, the record of a change that has happened already, and makes
    /// `after` durable now or later. If the disk refuses, emits an event of `vf` (0: of the GPU).
    void put(std::uint32_t vf, const GpuRecord& after);
    /// Copies the VFs of `record` to Vf::defined, which views show.
    void show(const GpuRecord& record);
    /// The VF's entry in `record`. If `record` has none, first adds Vf::defined.
    VfRecord& record_in(GpuRecord& record, std::uint32_t vf) const;
    /// Tries again to write a record that the disk has refused.
    void retry_record(Nanoseconds now);

    /// Emits an event for administrators, unless fold_ only counts it (EventFold). `vf` 0: the GPU.
    void emit(std::uint32_t vf, EventKind kind, std::string text);
    void report(AdminEvent admin_event, Nanoseconds now);
    [[nodiscard]] trace::Recorder::Source trace_source() const;

    std::string id_;
    GpuConfig config_;
    GpuPaths paths_;
    Ports ports_;
    PfLink pf_;
    DurableRecord record_;
    GpuState state_ = GpuState::Starting;
    std::string message_ = "not attached yet";
    std::string managed_processes_message_;  ///< result of ManagedProcesses::step()
    Nanoseconds retry_at_{0};                ///< earliest time of the next attempt to attach
    Nanoseconds retry_delay_ = kFirstRetry;
    Nanoseconds managed_processes_at_{0};  ///< when the managed processes are due for a step
    Nanoseconds refreshed_at_{0};  ///< start of the last refresh_all(); set back to request another
    GpuFacts info_{};
    std::shared_ptr<const Abilities> abilities_ = std::make_shared<const Abilities>();
    std::vector<VfShare> shares_;        ///< desired shares, for a driver without run tables
    bool are_shares_due_ = false;        ///< true if the driver may not have shares_ yet
    Nanoseconds device_clock_ahead_{0};  ///< device's clock − CLOCK_MONOTONIC
    std::shared_ptr<EventPort> events_;
    std::optional<Nanoseconds> checked_at_;
    std::optional<std::uint32_t> only_changed_vf_;
    bool are_members_stale_ = false;    ///< true if a record changed since refresh_members()
    std::uint64_t events_read_to_ = 0;  ///< all smaller sequence numbers are read
    std::uint64_t events_lost_ = 0;
    std::uint64_t impossible_ = 0;  ///< impossible events since the last log line
    Nanoseconds impossible_at_{0};  ///< earliest time of the next log line
    std::string table_condition_;
    VfTable vfs_;
    Nanoseconds record_retry_at_{0};       ///< earliest time to write a refused record again
    Nanoseconds rescrub_at_{0};            ///< earliest time to restart failed scrubs
    std::set<std::uint32_t> dirty_;        ///< numbers of VFs to read again, also VFs not in vfs_
    std::vector<vgpu_pf_event> policies_;  ///< writes to sysfs, not handled yet
    trace::Recorder schedule_;
    WaitAccount waits_;
    Nanoseconds restore_at_{0};  ///< earliest time of the next restore_missing()
    /// By VF number: why the VF's name is not unique. Set by Manager, also for VFs that are not in
    /// vfs_ yet.
    std::map<std::uint32_t, std::string> name_clashes_;
    Nanoseconds owners_at_{0};       ///< earliest time of the next find_orphans()
    Nanoseconds scrub_begin_at_{0};  ///< earliest time of the next scrub_released()
    std::shared_ptr<const vgpu_pf_run_table> table_;
    EventFold fold_;
    std::vector<AdminEvent> admin_events_;
};

}  // namespace vgpu::daemon
