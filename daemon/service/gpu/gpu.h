// SPDX-License-Identifier: MIT
//
// GpuModel: one GPU as vgpud runs it. Keeps the PF core's view (GET_INFO, GET_VF, events), the
// operator's (records in StateStore) and the time slicing (GpuSchedule) together:
//   attach   connect, take the policy lease, adopt the VFs in service, make what the records want
//   step     read events, finish scrubs, install run tables, notice losses and come back from them
//   requests create, destroy, set, control: checked, made durable, then done
// Order of a create: record durable, PROVISION, table. Of a destroy: record durable, RELEASE, scrub
// seen, scrub durable, SCRUB_DURABLE. At every point in between a new vgpud finds its way.
//
// Blocks as long as its PF core takes to answer. One thread: that of its GpuHost.
#pragma once

#include "daemon/ports/clock.h"
#include "daemon/ports/handover_port.h"
#include "daemon/ports/owner_port.h"
#include "daemon/ports/pf_port.h"
#include "daemon/service/gpu/companions.h"
#include "daemon/service/gpu/pf_link.h"
#include "daemon/service/slicing/gpu_schedule.h"
#include "daemon/service/slicing/wait_account.h"
#include "daemon/service/state/store.h"
#include "daemon/service/trace/recorder.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/views/notice_fold.h"
#include "daemon/service/views/views.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace vgpu::daemon {

/// A VF as an operator asks for it; what is not given gets its default.
/// Checked already for type and range (Manager, parse_configuration); what depends on the device is
/// checked by create().
struct CreateRequest {
    std::string name;  ///< empty: "<gpu>-vf<n>"
    /// Multiple of the device's VRAM unit. None: what is free, divided by the VFs that are left.
    std::optional<std::uint64_t> vram_bytes{};
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;
    VfQos qos{};
    VfCustody custody{};
    std::uint64_t cu_mask = 0;
    std::uint32_t doorbell_pages = 0;
    VfSecurity security{};
    std::string profile{};
    std::optional<std::uint32_t> vf{};  ///< this one; none: the first that is free
    std::optional<Uuid> uuid{};         ///< of a VF that is made again
    OwnerRecord owner{};                ///< whose it was then; it is its owner's again
};

/// What is not given stays. Nothing in here makes the VF anew or empties its VRAM.
struct VfChange {
    std::optional<std::string> name{};
    std::optional<std::uint32_t> weight{};
    std::optional<std::uint32_t> quantum_us{};
    QosChange qos{};
    CustodyChange custody{};
    std::optional<std::string> profile{};
};

struct GpuChange {
    std::optional<std::uint32_t> quantum_us;
    std::optional<std::uint32_t> max_gap_ms;
};

/// What a request may do to a VF that a client has open.
/// Without force such a request is refused (WrongState), and one that would end what an owner
/// computes is Claimed.
enum class Force { No, Yes };

/// What of a GPU must be asked of its PF core again: nothing that events do not tell of, the GPU's
/// own state and counters, or those of all its VFs, too.
enum class Freshness { Events, Gpu, Counters };
inline constexpr std::size_t kFreshnesses = 3;

/// In whose name something is asked for; empty: nobody's.
struct Asker {
    std::string owner{};
    Force force = Force::No;
};

/// Changes that are made together or not at all.
/// The GPU's and any number of its VFs', in one record and with one admission.
struct Settings {
    GpuChange gpu{};
    std::map<std::uint32_t, VfChange> vfs{};
    Force force = Force::No;  ///< handovers of VFs that are in use
};

/// What becomes of a VF's VRAM when its claim ends. Scrub: the VF is provisioned anew, empty,
/// before anybody can claim it. Pause: emptied as well, and a reservation stays its owner's.
enum class AfterRelease { Keep, Scrub, Pause };

/// Errors of the requests: StateReadOnly, VersionMismatch, PfLost, DeviceLost while the GPU cannot
/// take any; NoSuchVf for a VF that has neither resources nor a record; StateNotWritten if the disk
/// refuses, PfRefused if the PF core does. A request that fails leaves record and device as they
/// were, or says in a notice ("record-left") what the disk did not take back; that is tried again.
class GpuModel {
public:
    /// Attaching to a PF core that does not answer: first and longest pause, doubled in between.
    static constexpr Nanoseconds kFirstRetry = std::chrono::milliseconds(20);
    static constexpr Nanoseconds kLongestRetry = std::chrono::seconds(2);
    /// Between two looks at counters that no event tells of.
    static constexpr Nanoseconds kRefresh = std::chrono::seconds(1);
    /// freshen() asks nothing for counters if the last look is no older.
    static constexpr Nanoseconds kFreshEnough = std::chrono::milliseconds(100);
    /// Between two attempts to give a VF what it is defined to have.
    static constexpr Nanoseconds kRestoreRetry = std::chrono::seconds(5);
    /// Between two lines about events of a PF core that cannot be.
    static constexpr Nanoseconds kImpossiblePause = std::chrono::minutes(1);
    /// Between two looks at who of the owners is still alive, which reads all of /proc.
    static constexpr Nanoseconds kOwnerCheck = std::chrono::seconds(10);
    /// A client that died is seen by the device a moment later; one that stays open for longer than
    /// this after its VF was released loses it.
    static constexpr Nanoseconds kDetachPatience = std::chrono::seconds(5);

    /// References outlive the model; what is a pointer is its own.
    struct Ports {
        std::unique_ptr<PfPort> pf;
        std::unique_ptr<Companions> companions;  ///< none: the GPU is attached
        StateStore& store;
        const Clock& clock;
        const OwnerPort* owners = nullptr;         ///< none: nobody knows who is alive
        std::unique_ptr<HandoverPort> handover{};  ///< none: every VF goes where its home puts it
    };

    GpuModel(const GpuConfig& config, GpuPaths paths, Ports ports);

    /// Does everything that is due.
    /// Blocks as long as the PF core takes to answer; bounded by the port's own limits for each
    /// request. In this order: processes, connection, events, scrubs that are over, counters,
    /// scrubs and VFs that are owed, owners, and last the run table, which is planned from all of
    /// that.
    void step();
    /// When to call step() again if no fd becomes readable.
    [[nodiscard]] Nanoseconds wake_at() const;
    /// Readable when step() has something to do; -1 entries are to be ignored.
    [[nodiscard]] std::vector<int> wait_fds() const;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] GpuState state() const { return state_; }

    /// The number of the VF, provisioned and in the run table's competition. NoVram, NoFreeVf,
    /// OutOfRange, NoSchedule name what is short and what would fit. On disk before the device is
    /// asked, so a vgpud that dies meanwhile makes it again or releases it.
    Result<std::uint32_t> create(const CreateRequest& request);
    /// `by`: the owner in whose name it is asked for; empty: nobody's.
    /// Returns when the PF core has begun the release; the scrub and the end of the record follow
    /// in step(). Success too for a VF that is being scrubbed already.
    Result<> destroy(std::uint32_t vf, Force force, const std::string& by = "");
    /// Whose VF it is counts if its handover changes.
    Result<> change(std::uint32_t vf, const VfChange& change, const Asker& asker = {});
    /// Not part of the record: who is paused or stopped is the PF core's to know. WrongState if a
    /// client has the VF open and `action` would take the engine from it.
    Result<> control(std::uint32_t vf, vgpu_pf_control_action action, Force force,
                     const std::string& by = "");
    /// The generation of the claim in force afterwards.
    /// Durable when it returns, so that two consumers never get one VF. Claimed, StaleClaim,
    /// InvalidOwner; WrongState while the VF is on its way to be empty.
    Result<std::uint64_t> claim(std::uint32_t vf, const ClaimRequest& request);
    /// Ends a claim; success too if there is none.
    /// Durable when it returns, a scrub that is owed included: from then on nobody can claim the VF
    /// before it has been emptied, whatever dies. StaleClaim if the generation is not the one in
    /// force.
    Result<> release(std::uint32_t vf, const std::string& owner, std::uint64_t generation,
                     AfterRelease after = AfterRelease::Keep);
    /// NoSchedule if the VFs there are could not keep their gaps and contracts with it.
    Result<> change_gpu(const GpuChange& change);
    /// What there is, asked of the PF core now.
    /// Never from the last look, but one request per VF: for plans, not for lists.
    Result<GpuInventory> inventory();
    /// One durable record for all of them: after a crash they are all old or all new.
    Result<> configure(const Settings& settings);
    /// Gives a VF another shape; its VRAM comes back empty. Goes on in step(): the VF is there, and
    /// its record has no `next`, when it is over; its shape tells how.
    Result<> reshape(std::uint32_t vf, const VfShape& shape, Force force);
    /// `fd` stays the caller's.
    Result<> dump(int fd);
    /// What was decided lately and why, from the place `after` on (trace/recorder.h).
    [[nodiscard]] Result<trace::Piece> trace(std::optional<std::uint64_t> after) const {
        return schedule_.read(after);
    }

    /// Asks the PF core again for what `wanted` says, if what is known is older than kFreshEnough.
    void freshen(Freshness wanted);
    /// Asks the PF core for the VF, and then for the GPU, however fresh what is known is. PfLost,
    /// DeviceLost or VersionMismatch if there is no answer, or none that means anything; NoSuchVf.
    Result<> look_now(std::uint32_t vf);

    /// Numbers of the VFs that have resources or a record.
    [[nodiscard]] std::vector<std::uint32_t> vfs() const;
    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return live_.contains(vf); }
    [[nodiscard]] bool has_record(std::uint32_t vf) const { return shown_.contains(vf); }
    /// `vf` is one of vfs() that has a record. As last heard: nothing is asked of the PF core.
    [[nodiscard]] VfView view(std::uint32_t vf);
    [[nodiscard]] GpuView view();

    /// VRAM a new VF could get now.
    [[nodiscard]] std::uint64_t vram_available() const;

    /// The newest table the PF core is known to have; null if none was read yet.
    [[nodiscard]] std::shared_ptr<const vgpu_pf_run_table> table() const { return table_; }
    [[nodiscard]] bool is_connected() const { return pf_.is_connected(); }
    /// When GPU and VFs were last asked for everything.
    [[nodiscard]] std::optional<Nanoseconds> looked_at() const { return looked_at_; }
    /// The ring in use, null without one, and what of it has been read.
    [[nodiscard]] std::shared_ptr<const EventPort> events() const { return events_; }
    /// 0 while shares are still to follow what was changed.
    [[nodiscard]] std::uint64_t events_read_to() const {
        return are_members_stale_ ? 0 : events_read_to_;
    }

    /// Why names of its VFs do not lead to them: VF, words. Shown as their trouble.
    void set_name_clashes(std::map<std::uint32_t, std::string> clashes) {
        name_clashes_ = std::move(clashes);
    }

    /// The VF whose record and handover are all that has changed since the last call; nothing if
    /// more may have.
    [[nodiscard]] std::optional<std::uint32_t> take_only_change() {
        return std::exchange(only_change_, std::nullopt);
    }
    /// A request has changed what the next table is to be made of.
    [[nodiscard]] bool owes_table() const { return are_members_stale_; }

    [[nodiscard]] bool has_notices() const { return !notices_.empty(); }
    /// Bounded: beyond 1024 that nobody has taken, notices are dropped.
    std::vector<Notice> take_notices();

    /// Any thread: ends the wait for the PF core that is under way.
    void interrupt() { pf_.interrupt(); }

private:
    // attaching and losing (attach.cpp)
    void try_attach(Nanoseconds now);
    /// On failure everything is as after lose(), but for what was read.
    Result<> attach(Nanoseconds now);
    /// live_ and the counters that RUN events go on from.
    Result<> read_all_vfs();
    /// Records and device are held against each other, and both kinds of leftovers are dealt with:
    /// VFs that nobody defined get a record, VFs that were defined and are missing are made again.
    Result<> adopt_vfs();
    Result<> adopt_vf(std::uint32_t vf, GpuRecord& record);
    Result<> go_on_releasing(VfRecord& record, const vgpu_pf_vf& live);
    /// By UUID, not by number alone: a number may have been given to another VF.
    [[nodiscard]] VfRecord record_for(const vgpu_pf_vf& live) const;
    /// Success also if the PF core refuses: then the VF is held, with its reason, and tried again.
    /// Fails only if the PF core was lost.
    Result<> restore_vf(const VfRecord& wanted);
    Result<> provision(const VfRecord& wanted);
    /// Nothing of what is known is thrown away: VFs keep computing, and what was last heard stays
    /// in view until attach() reads it anew.
    void lose(const Error& error, Nanoseconds now);
    /// Run stamps are the device's clock, all others CLOCK_MONOTONIC: the distance, refreshed with
    /// every get_info().
    void note_device_clock();
    void notice_device_state();
    void become(GpuState state, std::string message);

    // defined and not in service (restore.cpp)
    /// Why the PF core would not make or scrub a VF. It counts while the VF is in the life in which
    /// this was said, so no path has to withdraw it.
    struct Refusal {
        std::uint32_t generation = 0;  ///< 0: the VF has no resources
        std::string text{};
    };
    /// Why the VF is not as it is defined, from what is known now; empty if it is.
    [[nodiscard]] std::string trouble(std::uint32_t vf) const;
    [[nodiscard]] std::size_t count_troubled() const;
    /// Another VF than the one on record is in service under this number.
    [[nodiscard]] bool is_replaced(std::uint32_t vf) const;
    void note_refusal(std::uint32_t vf, std::string text);
    /// Keeps a VF in view that cannot be had: its number stays its own.
    void hold(const VfRecord& wanted, std::string why);
    void show_absent(const VfRecord& wanted);
    void begin_anew(const VfRecord& wanted);
    void note_absent(const vgpu_pf_vf& absent);
    /// Every kRestoreRetry, and at once after something was freed.
    void restore_missing(Nanoseconds now);
    Result<> forget_definition(std::uint32_t vf);
    /// Success says that the definition is durable, not that the VF is there.
    Result<> redefine(std::uint32_t vf, const VfShape& shape);
    [[nodiscard]] std::string state_text() const;
    /// WrongState, with the reason, while the VF has a record and no resources.
    [[nodiscard]] Result<> in_service(std::uint32_t vf) const;
    /// WrongState while another VF than the one on record is in service under this number.
    [[nodiscard]] Result<> defined_here(std::uint32_t vf) const;

    // who gets the functions (handover.cpp)
    Result<> settle(const GpuRecord& before, const GpuRecord& after, const Asker& asker);
    [[nodiscard]] Result<> check_handovers(const GpuRecord& before, const GpuRecord& after,
                                           const Asker& asker) const;
    Result<> move_handovers(const GpuRecord& before, const GpuRecord& after);
    Result<> set_handover(std::uint32_t vf, Handover handover);
    void take_function_back(const VfRecord& record);
    void look_at_handovers();

    // owners (owners.cpp)
    [[nodiscard]] std::string name_text(std::uint32_t vf) const;
    [[nodiscard]] Result<> check_owner(std::uint32_t vf, std::string_view verb, Force force,
                                       const std::string& by) const;
    void owe_scrub(VfRecord& record) const;
    void scrub_released(Nanoseconds now);
    void retry_scrubs(Nanoseconds now);
    [[nodiscard]] Result<> scrub_released(std::uint32_t vf, const vgpu_pf_vf& live);
    tl::unexpected<Error> scrub_before_claim(std::uint32_t vf, GpuRecord record,
                                             const OwnerRecord& before);
    /// Notices and `orphan` in views; claims are never ended by it.
    void look_for_orphans(Nanoseconds now);
    void look_at_owner(std::uint32_t vf, const OwnerRecord& owner, std::optional<bool> exists,
                       Nanoseconds now);

    // events (events.cpp)
    /// All there are, in bounded batches; then VFs whose state may have changed are asked about
    /// once, however many events they had.
    void read_events(Nanoseconds now);
    void on_event(const vgpu_pf_event& event, Nanoseconds now);
    void on_run(const vgpu_pf_event& event, Nanoseconds now);
    /// Said at once, and what follows within kImpossiblePause as a number.
    void note_impossible(const vgpu_pf_event& event, Nanoseconds now);
    void on_lost_events(std::uint64_t count);
    /// Writes to the PF's sysfs files reach vgpud as events while it holds the lease: they are
    /// requests like those of the bus, checked and made durable.
    void obey_policies();
    Result<> obey(const vgpu_pf_event& policy, std::uint32_t vf);
    void count_missed_service();
    void wake(const vgpu_pf_event& event, Nanoseconds now);
    void note_wake(std::uint32_t vf, Nanoseconds at);
    void note_idle(std::uint32_t vf, Nanoseconds at);
    void note_parked_idle(std::uint32_t vf, Nanoseconds at);
    void note_capped(std::uint32_t vf, Nanoseconds at);
    void note_event(const vgpu_pf_event& event);
    /// Scrubs that are over and not yet recorded; those that the disk refuses are tried again.
    void finish_scrubs(Nanoseconds now);
    Result<> finish_scrub(std::uint32_t vf, std::uint32_t generation);
    void refresh(std::uint32_t vf);
    Result<> look_at(std::uint32_t vf);
    /// GET_VF, with numbers that can be: the PF core is another process.
    Result<vgpu_pf_vf> ask_vf(std::uint32_t vf);
    Result<> look_at_gpu();
    void refresh_all(Nanoseconds now);
    void refresh_members(Nanoseconds now);
    void look_at_loosened(const std::vector<GpuSchedule::Member>& members);
    [[nodiscard]] bool may_plan() const;
    /// Last in each step, so that it is planned from all that was read.
    void install_table(Nanoseconds now);
    void note_table_trouble(std::string trouble);
    void ask_again();

    // requests (requests.cpp)
    /// Why no request can be taken now, most lasting reason first.
    [[nodiscard]] Result<> usable() const;
    /// The same of those that change no record.
    [[nodiscard]] Result<> in_reach() const;
    /// NoSuchVf unless the VF is in view.
    [[nodiscard]] Result<> known(std::uint32_t vf) const;
    /// The VF as the PF core has it now; a PF core that is lost by that has nothing on record.
    Result<> look_before_change(std::uint32_t vf);
    [[nodiscard]] Result<> check_attached(std::uint32_t vf, std::string_view verb,
                                          Force force) const;
    /// Empty if sockets are not shown.
    [[nodiscard]] std::string socket_of(std::uint32_t vf) const;
    /// Who has an attached VF open, as far as that is known.
    [[nodiscard]] std::string client_of(std::uint32_t vf) const;
    [[nodiscard]] bool comes_back(std::uint32_t vf) const;
    Result<> keep_away(std::uint32_t vf);
    /// The PF core refused what is on record already.
    void undo_create(const VfRecord& wanted, const GpuRecord& before);
    [[nodiscard]] Result<std::uint32_t> free_vf();
    [[nodiscard]] Result<std::uint32_t> vf_for(const CreateRequest& request);
    [[nodiscard]] Result<std::uint64_t> vram_for(const CreateRequest& request) const;
    [[nodiscard]] Result<> check_room(const VfRecord& wanted) const;
    /// What the device has, without its VFs.
    [[nodiscard]] GpuInventory capacity() const;
    /// NoSchedule or OutOfRange as for a plan. Paused VFs count: they may resume at any time
    /// without asking.
    [[nodiscard]] Result<> admit(const GpuRecord& record) const;
    static void add_member(std::vector<GpuSchedule::Member>& members, const VfRecord& vf,
                           const GpuPolicy& policy);
    /// Everything that is kept of the VF, since its number will be another VF's. What is kept of
    /// the number stays: who gets its function, and a record that the disk has not let go.
    void forget(std::uint32_t vf);

    // plans (configure.cpp)
    static void apply_change(VfRecord& record, const VfChange& change);
    void undo_reshape(std::uint32_t vf, const GpuRecord& before);
    /// The PF core refused what is on record already.
    void undo_record(std::uint32_t vf, const GpuRecord& before);
    /// Puts what is shown of the VF into `record`, if it is the one on record.
    void put_shown(std::uint32_t vf, GpuRecord& record) const;
    /// The record with all that the disk has refused of it.
    [[nodiscard]] GpuRecord record_to_be() const;
    /// The record of a VF, after the disk has refused it: success if it is on disk by now.
    Result<> record_again(std::uint32_t vf);
    /// Connected: what may have been made is in live_ then.
    Result<> erase_unmade();
    void record_all_again(Nanoseconds now);
    /// The record must have `next`, and the VF no resources.
    Result<> finish_reshape(std::uint32_t vf);
    /// Which of its two shapes a VF has that is in service, and whether it is still to be emptied.
    void settle_next(VfRecord& record, const vgpu_pf_vf& live) const;

    /// `kind` is a word that lasts as long as vgpud (a literal, a name_of()): notices keep the
    /// view. VF 0: the GPU.
    void say(std::uint32_t vf, std::string_view kind, std::string text);
    void tell(Notice notice, Nanoseconds now);
    [[nodiscard]] trace::Recorder::Source trace_source() const;

    std::string id_;
    GpuConfig config_;
    GpuPaths paths_;
    Ports ports_;
    PfLink pf_;
    GpuState state_ = GpuState::Starting;
    std::string message_ = "not attached yet";
    std::string companions_message_;
    Nanoseconds retry_at_{0};
    Nanoseconds retry_delay_ = kFirstRetry;
    Nanoseconds companions_at_{0};
    Nanoseconds refreshed_at_{0};
    vgpu_pf_info info_{};
    Nanoseconds device_clock_ahead_{0};  ///< of CLOCK_MONOTONIC
    std::shared_ptr<EventPort> events_;
    std::optional<Nanoseconds> looked_at_;
    std::optional<std::uint32_t> only_change_;
    bool are_members_stale_ = false;    ///< records have changed since refresh_members()
    std::uint64_t events_read_to_ = 0;  ///< all with a smaller sequence number are read
    std::uint64_t events_lost_ = 0;
    std::uint64_t impossible_ = 0;  ///< events, since that was said
    Nanoseconds impossible_at_{0};  ///< not to be said before
    std::string table_trouble_;
    std::map<std::uint32_t, vgpu_pf_vf> live_;  ///< VFs that are not ABSENT
    std::map<std::uint32_t, VfRecord> shown_;   ///< record of each live VF, made up if read-only
    /// By RUN events, from what the PF core's counters said when this vgpud attached. The
    /// difference to those counters later is what lost events told of.
    std::map<std::uint32_t, std::uint64_t> counted_service_ns_;
    std::map<std::uint32_t, std::uint64_t> counted_reserved_ns_;  ///< part of it
    std::map<std::uint32_t, std::uint32_t> scrubbed_;  ///< seen complete, not yet durable
    std::set<std::uint32_t> unrecorded_;               ///< VFs whose record is not as shown_ has it
    std::map<std::uint32_t, Uuid> unmade_;             ///< create was refused, the record is left
    Nanoseconds scrub_retry_at_{0};
    Nanoseconds rescrub_at_{0};
    std::set<std::uint32_t> dirty_;        ///< VFs to ask about again
    std::set<std::uint32_t> maybe_idle_;   ///< VFs whose IDLE was lost or did not count, maybe
    std::vector<vgpu_pf_event> policies_;  ///< written in sysfs, not yet looked at
    trace::Recorder schedule_;
    WaitAccount waits_;
    std::map<std::uint32_t, Refusal> refusals_;  ///< VF: the last one, of any of its lives
    Nanoseconds restore_at_{0};
    std::map<std::uint32_t, Handover> handovers_;  ///< VF: who gets its function, as last seen
    std::map<std::uint32_t, std::string> handover_troubles_;  ///< VF: why that is not as defined
    std::map<std::uint32_t, std::string> name_clashes_;       ///< VF: who else has its name
    std::map<std::uint32_t, std::string> orphans_;            ///< VF: why its claim looks forgotten
    std::map<std::uint32_t, Nanoseconds> unattached_since_;
    std::map<std::uint32_t, std::string>
        clients_;  ///< as shown last; asked for again after each look
    Nanoseconds owners_at_{0};
    std::map<std::uint32_t, Nanoseconds> to_scrub_;  ///< VF: released then; its scrub has not begun
    Nanoseconds scrub_begin_at_{0};                  ///< not before, after a refusal
    std::shared_ptr<const vgpu_pf_run_table> table_;
    NoticeFold fold_;
    std::vector<Notice> notices_;
};

}  // namespace vgpu::daemon
