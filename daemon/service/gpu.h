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
#include "daemon/ports/owner_port.h"
#include "daemon/ports/pf_port.h"
#include "daemon/service/companions.h"
#include "daemon/service/gpu_inventory.h"
#include "daemon/service/gpu_schedule.h"
#include "daemon/service/state_store.h"
#include "daemon/service/trace/recorder.h"
#include "daemon/service/views.h"
#include "daemon/service/wait_account.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace vgpu::daemon {

/// A VF as an operator asks for it; what is not given gets its default.
struct CreateRequest {
    std::string name;  ///< empty: "<gpu>-vf<n>"
    std::optional<std::uint64_t> vram_bytes;
    std::uint32_t weight = scheduler::kDefaultWeight;
    std::uint32_t quantum_us = 0;
    VfQos qos{};
    std::uint64_t cu_mask = 0;
    std::uint32_t doorbell_pages = 0;
    VfSecurity security{};
    std::string profile{};
    std::optional<std::uint32_t> vf{};  ///< this one; none: the first that is free
    std::optional<Uuid> uuid{};         ///< of a VF that is made again
};

struct VfChange {
    std::optional<std::string> name;
    std::optional<std::uint32_t> weight;
    std::optional<std::uint32_t> quantum_us;
    QosChange qos{};
    std::optional<std::string> profile{};
};

struct GpuChange {
    std::optional<std::uint32_t> quantum_us;
    std::optional<std::uint32_t> max_gap_ms;
};

/// Changes that are made together or not at all.
struct Settings {
    GpuChange gpu{};
    std::map<std::uint32_t, VfChange> vfs{};
};

/// What a request may do to a VF that a client has open.
enum class Force { No, Yes };

/// What becomes of a VF's VRAM when its claim ends. Scrub: the VF is provisioned anew, empty,
/// before anybody can claim it.
enum class AfterRelease { Keep, Scrub };

class GpuModel {
public:
    static constexpr Nanoseconds kFirstRetry = std::chrono::milliseconds(20);
    static constexpr Nanoseconds kLongestRetry = std::chrono::seconds(2);
    static constexpr Nanoseconds kRefresh = std::chrono::seconds(1);
    static constexpr Nanoseconds kFreshEnough = std::chrono::milliseconds(100);
    /// Between two attempts to give a VF what it is defined to have.
    static constexpr Nanoseconds kRestoreRetry = std::chrono::seconds(5);
    static constexpr Nanoseconds kOwnerCheck = std::chrono::seconds(10);
    /// A client that died is seen by the device a moment later; one that stays open for longer than
    /// this after its VF was released loses it.
    static constexpr Nanoseconds kDetachPatience = std::chrono::seconds(5);

    struct Ports {
        std::unique_ptr<PfPort> pf;
        std::unique_ptr<Companions> companions;  ///< none: the GPU is attached
        StateStore& store;
        const Clock& clock;
        const OwnerPort* owners = nullptr;  ///< none: nobody knows who is alive
    };

    GpuModel(const GpuConfig& config, GpuPaths paths, Ports ports);

    /// Does everything that is due.
    void step();
    /// When to call step() again if no fd becomes readable.
    [[nodiscard]] Nanoseconds wake_at() const;
    /// Readable when step() has something to do; -1 entries are to be ignored.
    [[nodiscard]] std::vector<int> wait_fds() const;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] GpuState state() const { return state_; }

    Result<std::uint32_t> create(const CreateRequest& request);
    /// `by`: the owner in whose name it is asked for; empty: nobody's.
    Result<> destroy(std::uint32_t vf, Force force, const std::string& by = "");
    Result<> change(std::uint32_t vf, const VfChange& change);
    Result<> control(std::uint32_t vf, vgpu_pf_control_action action, Force force,
                     const std::string& by = "");
    /// The generation of the claim in force afterwards.
    Result<std::uint64_t> claim(std::uint32_t vf, const ClaimRequest& request);
    /// Ends a claim; success too if there is none.
    Result<> release(std::uint32_t vf, const std::string& owner, std::uint64_t generation,
                     AfterRelease after = AfterRelease::Keep);
    Result<> change_gpu(const GpuChange& change);
    /// What there is, asked of the PF core now.
    Result<GpuInventory> inventory();
    Result<> configure(const Settings& settings);
    /// Gives a VF another shape; its VRAM comes back empty. Goes on in step(): the VF is there, and
    /// its record has no `next`, when it is over; its shape tells how.
    Result<> reshape(std::uint32_t vf, const VfShape& shape, Force force);
    Result<> dump(int fd);
    /// What was decided lately and why, from the place `after` on (trace/recorder.h).
    [[nodiscard]] Result<trace::Piece> trace(std::optional<std::uint64_t> after) const {
        return schedule_.read(after);
    }

    /// Asks the PF core again if what is known is older than kFreshEnough.
    void freshen();

    /// Numbers of the VFs that have resources or a record.
    [[nodiscard]] std::vector<std::uint32_t> vfs() const;
    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return live_.contains(vf); }
    [[nodiscard]] bool has_record(std::uint32_t vf) const { return shown_.contains(vf); }
    [[nodiscard]] VfView view(std::uint32_t vf);
    [[nodiscard]] GpuView view();

    /// VRAM a new VF could get now.
    [[nodiscard]] std::uint64_t vram_available() const;

    /// The newest table the PF core is known to have; null if none was read yet.
    [[nodiscard]] std::shared_ptr<const vgpu_pf_run_table> table() const { return table_; }
    [[nodiscard]] bool is_connected() const { return ports_.pf->is_connected(); }

    [[nodiscard]] bool has_notices() const { return !notices_.empty(); }
    std::vector<Notice> take_notices();

    /// Any thread: ends the wait for the PF core that is under way.
    void interrupt() { ports_.pf->interrupt(); }

private:
    // attaching and losing (gpu_attach.cpp)
    void try_attach(Nanoseconds now);
    Result<> attach(Nanoseconds now);
    Result<> read_all_vfs();
    Result<> adopt_vfs();
    Result<> adopt_vf(std::uint32_t vf, GpuRecord& record);
    [[nodiscard]] VfRecord record_for(const vgpu_pf_vf& live) const;
    Result<> restore_vf(const VfRecord& wanted);
    Result<> provision(const VfRecord& wanted);
    void lose(const Error& error, Nanoseconds now);
    void note_device_clock();
    void notice_device_state();
    void become(GpuState state, std::string message);

    // defined and not in service (gpu_restore.cpp)
    void hold(const VfRecord& wanted, std::string trouble);
    void note_absent(const vgpu_pf_vf& absent);
    void restore_missing(Nanoseconds now);
    Result<> forget_definition(std::uint32_t vf);
    Result<> redefine(std::uint32_t vf, const VfShape& shape);
    [[nodiscard]] std::string state_text() const;
    [[nodiscard]] Result<> in_service(std::uint32_t vf) const;
    [[nodiscard]] Result<> defined_here(std::uint32_t vf) const;

    // owners (gpu_owners.cpp)
    [[nodiscard]] std::string name_text(std::uint32_t vf) const;
    [[nodiscard]] Result<> check_owner(std::uint32_t vf, std::string_view verb, Force force,
                                       const std::string& by) const;
    void owe_scrub(VfRecord& record) const;
    void scrub_released(Nanoseconds now);
    [[nodiscard]] Result<> scrub_released(std::uint32_t vf, const vgpu_pf_vf& live);
    void look_for_orphans(Nanoseconds now);
    void look_at_owner(std::uint32_t vf, const OwnerRecord& owner, std::optional<bool> exists,
                       Nanoseconds now);

    // events (gpu_events.cpp)
    void read_events(Nanoseconds now);
    void on_event(const vgpu_pf_event& event, Nanoseconds now);
    void on_lost_events(std::uint64_t count);
    void obey_policies();
    Result<> obey(const vgpu_pf_event& policy, std::uint32_t vf);
    void count_missed_service();
    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> table_service() const;
    void wake(const vgpu_pf_event& event, Nanoseconds now);
    void note_wake(std::uint32_t vf, Nanoseconds at);
    void note_idle(std::uint32_t vf, Nanoseconds at);
    void note_parked_idle(std::uint32_t vf, Nanoseconds at);
    void note_capped(std::uint32_t vf, Nanoseconds at);
    void note_event(const vgpu_pf_event& event);
    void finish_scrubs(Nanoseconds now);
    Result<> finish_scrub(std::uint32_t vf, std::uint32_t generation);
    void refresh(std::uint32_t vf);
    void refresh_all(Nanoseconds now);
    void refresh_members(Nanoseconds now);
    [[nodiscard]] bool may_plan() const;
    void install_table(Nanoseconds now);
    void note_table_trouble(std::string trouble);
    void ask_again();

    // requests (gpu_requests.cpp)
    [[nodiscard]] Result<> usable() const;
    [[nodiscard]] Result<> known(std::uint32_t vf) const;
    [[nodiscard]] Result<> check_attached(std::uint32_t vf, std::string_view verb,
                                          Force force) const;
    void undo_create(const VfRecord& wanted, const GpuRecord& before);
    [[nodiscard]] Result<std::uint32_t> free_vf() const;
    [[nodiscard]] Result<std::uint32_t> vf_for(const CreateRequest& request) const;
    [[nodiscard]] Result<std::uint64_t> vram_for(const CreateRequest& request) const;
    [[nodiscard]] Result<> check_engine(const CreateRequest& request) const;
    [[nodiscard]] Result<> admit(const GpuRecord& record) const;
    [[nodiscard]] std::vector<GpuSchedule::Member> members_of(const GpuRecord& record) const;
    void forget(std::uint32_t vf);

    // plans (gpu_configure.cpp)
    static void apply_change(VfRecord& record, const VfChange& change);
    [[nodiscard]] Result<> check_shape(const VfShape& shape) const;
    void undo_reshape(std::uint32_t vf, const GpuRecord& before);
    Result<> finish_reshape(std::uint32_t vf);
    static void settle_next(VfRecord& record, const vgpu_pf_vf& live);

    template <typename T> void watch_loss(const Result<T>& result) {
        if (!result && !ports_.pf->is_connected()) lose(result.error(), ports_.clock.now());
    }
    void say(std::uint32_t vf, std::string_view kind, std::string text);
    [[nodiscard]] trace::Recorder::Source trace_source() const;

    std::string id_;
    GpuConfig config_;
    GpuPaths paths_;
    Ports ports_;
    GpuState state_ = GpuState::Starting;
    std::string message_ = "not attached yet";
    std::string companions_message_;
    Nanoseconds retry_at_{0};
    Nanoseconds retry_delay_ = kFirstRetry;
    Nanoseconds companions_at_{0};
    Nanoseconds refreshed_at_{0};
    vgpu_pf_info info_{};
    Nanoseconds device_clock_ahead_{0};  ///< of CLOCK_MONOTONIC
    std::unique_ptr<EventPort> events_;
    std::uint64_t events_lost_ = 0;
    std::string table_trouble_;
    std::map<std::uint32_t, vgpu_pf_vf> live_;  ///< VFs that are not ABSENT
    std::map<std::uint32_t, VfRecord> shown_;   ///< record of each live VF, made up if read-only
    std::map<std::uint32_t, std::uint64_t> counted_service_ns_;
    std::map<std::uint32_t, std::uint64_t> counted_reserved_ns_;  ///< part of it
    std::map<std::uint32_t, std::uint32_t> scrubbed_;  ///< seen complete, not yet durable
    Nanoseconds scrub_retry_at_{0};
    std::set<std::uint32_t> dirty_;        ///< VFs to ask about again
    std::vector<vgpu_pf_event> policies_;  ///< written in sysfs, not yet looked at
    trace::Recorder schedule_;
    WaitAccount waits_;
    std::map<std::uint32_t, std::string> troubles_;  ///< VF: why it is not as it is defined
    Nanoseconds restore_at_{0};
    std::map<std::uint32_t, std::string> orphans_;  ///< VF: why its claim looks forgotten
    std::map<std::uint32_t, Nanoseconds> unattached_since_;
    Nanoseconds owners_at_{0};
    std::map<std::uint32_t, Nanoseconds> to_scrub_;  ///< VF: released then; its scrub has not begun
    Nanoseconds scrub_begin_at_{0};                  ///< not before, after a refusal
    std::shared_ptr<const vgpu_pf_run_table> table_;
    std::vector<Notice> notices_;
};

}  // namespace vgpu::daemon
