// SPDX-License-Identifier: MIT
#include "tests/unit/core/exploration.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

namespace vgpu::test {
namespace {

constexpr std::uint32_t kVfs = 2, kFirst = Adversity::kNeighbour, kSubject = Adversity::kSubject;
constexpr std::uint32_t kShortQuantumUs = 2'000, kGapUs = 10'000;
constexpr Adversity::Setup kSetup{
    .vfs = kVfs, .vram_mib = 16, .quantum_us = kShortQuantumUs, .max_gap_us = kGapUs};

/// Until everything is answered: full access, which lasts longest, and the reset after it.
constexpr std::uint64_t kRestLimit = 12 * kSecond;
/// What a driver waits for an answer; half of it, and a poll.
constexpr std::uint64_t kDriverLimit = MAILBOX_GUEST_MSG_LIMIT_MS * kMs;
constexpr std::uint64_t kAnswerLimit = 3100 * kMs;
/// A command that never ends, the reset of its VF, and the reset of the device after it.
constexpr std::uint64_t kFaultLimit = 4500 * kMs;
/// A switch to the VF, and one that was under way.
constexpr std::uint64_t kGapSlack = kMs;

/// Steps of both VFs through the engine, several times.
constexpr std::uint32_t kRound = 40;

/// Hashes words, and times as their distance from now.
class Digest {
public:
    explicit Digest(std::uint64_t now) : now_(now) {}

    void add(std::uint64_t word) {
        hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ull;
        hash_ ^= hash_ >> 29;
    }
    void add_time(std::uint64_t time) {
        const std::uint64_t distance = time > now_ ? time - now_ : now_ - time;
        if (time == 0) return add(0);
        add(static_cast<std::uint64_t>(std::bit_width(distance / kUs)) << 1 |
            (time > now_ ? 1 : 0));
    }
    [[nodiscard]] std::uint64_t value() const { return hash_; }

private:
    std::uint64_t now_;
    std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

void add_vf(Digest& digest, const vgpu_vf& vf) {
    digest.add(vf.state);
    digest.add(vf.inbox.events);
    digest.add(vf.inbox.requested | (vf.inbox.token != 0 ? 256u : 0u));
    digest.add(vf.control.gates);
    digest.add(vf.mailbox.out[0]);
    digest.add(vf.mailbox.deferred_request);
    digest.add(vf.reset.pending_message);
    digest.add(vf.scrub.next_unit);
    digest.add(vf.scrub.failures);
    digest.add(vf.guard.level);
    digest.add(vf.config.vram_bytes);
    std::uint64_t flags = vf.reset.stage | std::uint64_t{vf.scrub.stage} << 8;
    for (const bool flag :
         {vf.attached, vf.control.driver_loaded, vf.control.is_stopped_by_loss,
          vf.mailbox.out_pending, vf.mailbox.ack_expected, vf.access.granted, vf.reset.flr_done,
          vf.reset.is_client_flr_pending, vf.reset.guest_notified, vf.reset.guest_ready,
          vf.reset.renotified, vf.reset.unanswered, vf.guard.paused, vf.contract.is_awake})
        flags = flags << 1 | static_cast<std::uint64_t>(flag);
    digest.add(flags);
    for (std::uint32_t event = 0; event < VGPU_VF_EVENTS; ++event)
        if ((vf.inbox.events >> event & 1u) != 0) digest.add(vf.inbox.reasons[event]);
    for (std::uint32_t id = 0; id < VGPU_VF_TIMER_GUARD; ++id) digest.add_time(vf.timers_ns[id]);
}

void add_run(Digest& digest, const vgpu_run& run) {
    digest.add(run.vf | std::uint64_t{run.kind} << 8 | std::uint64_t{run.is_cut} << 16 |
               std::uint64_t{run.is_accounted} << 17 | std::uint64_t{run.is_advance} << 18 |
               std::uint64_t{run.is_overdue} << 19);
}

void add_scheduler(Digest& digest, const vgpu_pf& pf) {
    const vgpu_pf_scheduler& scheduler = pf.scheduler;
    digest.add(scheduler.state | std::uint64_t{scheduler.preemption} << 8 |
               std::uint64_t{scheduler.is_decision_due} << 16 |
               std::uint64_t{scheduler.is_idle} << 17 |
               std::uint64_t{scheduler.tables.is_pending} << 18);
    digest.add(scheduler.exclusive_vf);
    digest.add(scheduler.cut.vf);
    digest.add(scheduler.aborts);
    digest.add(scheduler.tables.cursors[0]);
    for (const auto& indexed : scheduler.tables.indexed)
        digest.add(indexed.table.count << 16 | indexed.table.weights[0]);
    add_run(digest, scheduler.run);
    add_run(digest, scheduler.next);
    digest.add_time(scheduler.recover_deadline_ns);
    digest.add(pf.sw.from << 8 | pf.sw.to << 16 | pf.sw.step << 24 | (pf.sw.is_busy ? 1u : 0u) |
               (pf.sw.is_unwritten ? 2u : 0u));
    digest.add(pf.sw.status);
}

void add_jobs(Digest& digest, const vgpu_pf& pf) {
    const vgpu_pf_stream_job& stream = pf.stream;
    for (std::uint32_t i = 0; i < pf.bulk.used; ++i) {
        const vgpu_bulk_op& op = pf.bulk.queue[(pf.bulk.head + i) % VGPU_BULK_QUEUE];
        digest.add(op.opcode << 16 | op.vf << 8 | op.owner);
    }
    digest.add((pf.bulk.is_started ? 1u : 0u) | (pf.bulk.is_under_way ? 2u : 0u));
    if (stream.kind != VGPU_STREAM_NONE) {
        digest.add(stream.kind | stream.vf << 8 | stream.step << 16);
        digest.add(stream.vram_offset);
        digest.add((stream.is_waiting_device ? 1u : 0u) | (stream.is_changed ? 2u : 0u) |
                   (stream.is_broken ? 4u : 0u) | (stream.request != nullptr ? 8u : 0u));
    }
    digest.add(pf.provision.vf);
    digest.add(pf.verify.vf);
    digest.add((pf.device.is_attached ? 1u : 0u) | (pf.device_reset.is_due ? 2u : 0u) |
               (pf.device_reset.is_under_way ? 4u : 0u) | (pf.device_reset.is_lost ? 8u : 0u));
    for (std::uint32_t id = 0; id < VGPU_PF_TIMERS; ++id)
        if (id != VGPU_PF_TIMER_WATCHDOG) digest.add_time(pf.timers.at_ns[id]);
}

void lose_device(Adversity& world, std::uint32_t) {
    world.lose_device();
}

void get_device_back(Adversity& world, std::uint32_t) {
    world.get_device_back();
}

void give_work(Adversity& world, std::uint32_t vf) {
    world.rig.gpu.give_work(vf, kEndless);
}

void restart_core(Adversity& world, std::uint32_t) {
    world.restart_core();
}

void change_table(Adversity& world, std::uint32_t vf) {
    world.rig.set_weights({{1, kShortQuantumUs}, {2, kShortQuantumUs}}, {{vf, 3}, {3 - vf, 1}},
                          {{1, kGapUs}, {2, kGapUs}});
}

/// VF2 is paused, and a stream of it is there to be restored.
void pause_with_stream(Adversity& world) {
    world.rig.control(kSubject, VGPU_PF_PAUSE);
    vgpu_pf_stream save{sizeof(save), kSubject, 0, 0, 0};
    world.rig.request(VGPU_PF_OP_SAVE, save);
    world.rig.gpu.stream_in.assign(std::exchange(world.rig.gpu.stream_out, {}));
}

/// The device refuses the access after the next `Accesses`.
template <std::uint64_t Accesses> void fail_access(Adversity& world, std::uint32_t) {
    world.rig.gpu.fail_after = Accesses;
}

template <std::uint64_t... Accesses>
void add_failing_accesses(std::vector<Exploration::Act>& acts,
                          std::integer_sequence<std::uint64_t, Accesses...>) {
    (acts.push_back(
         {"AccessFailsAfter" + std::to_string(Accesses), &fail_access<Accesses>, 0, true, false}),
     ...);
}

template <std::size_t Row> void arise(Adversity& world, std::uint32_t) {
    Adversity::troubles()[Row].arise(world);
}

template <std::size_t... Rows>
void add_troubles(std::vector<Exploration::Act>& acts, std::index_sequence<Rows...>) {
    (acts.push_back({Adversity::troubles()[Rows + 1].name, &arise<Rows + 1>, 0, true, true}), ...);
}

}  // namespace

const std::vector<Exploration::Root>& Exploration::roots() {
    static const std::vector<Root> kRoots{
        {"BothRun", [](Adversity&) {}},
        {"OneIsPaused", pause_with_stream},
        {"OneHasNoDriver", [](Adversity& w) { w.rig.gpu.guest_resets_function(kSubject); }},
        {"OneIsReleased", [](Adversity& w) { w.rig.release(kSubject); }},
    };
    return kRoots;
}

const std::vector<Exploration::Act>& Exploration::acts() {
    static const std::vector<Act> kActs = [] {
        std::vector<Act> acts;
        for (std::uint32_t vf = kFirst; vf <= kVfs; ++vf) {
            const std::string number = std::to_string(vf);
            const bool is_short = vf == kSubject;
            for (const auto& event : Adversity::events())
                acts.push_back({event.name + number, event.happen, vf, false, is_short});
            acts.push_back({"Work" + number, give_work, vf, false, is_short});
            acts.push_back({"Table" + number, change_table, vf, false, is_short});
        }
        acts.push_back({"DeviceBack", get_device_back, 0, false, true});
        acts.push_back({"DeviceLost", lose_device, 0, true, true});
        acts.push_back({"CoreRestarts", restart_core, 0, true, true});
        constexpr std::size_t kTroubles = 16;
        add_troubles(acts, std::make_index_sequence<kTroubles>());
        add_failing_accesses(acts, std::make_integer_sequence<std::uint64_t, 24>());
        return acts;
    }();
    return kActs;
}

void Exploration::report(const Path& path, const std::string& what) {
    std::string text = path.text + ": " + what + " (";
    for (std::uint32_t n = kFirst; n <= kVfs; ++n)
        text += "VF" + std::to_string(n) + " " +
                vgpu_pf_control_state_name(world_->rig.vf(n).state) + ", ";
    const char* engine = vgpu_pf_run_machine_state_name(world_->rig.pf->scheduler.state);
    wrong.push_back(text + "engine " + engine + ")");
}

std::uint64_t Exploration::digest(const Path& path) {
    const vgpu_pf& pf = *world_->rig.pf;
    Digest digest(world_->rig.gpu.now());
    for (const std::uint64_t word : world_->rig.gpu.digest()) digest.add(word);
    add_scheduler(digest, pf);
    add_jobs(digest, pf);
    for (std::uint32_t n = kFirst; n <= kVfs; ++n) {
        add_vf(digest, pf.vfs[n]);
        digest.add_time(path.since[n]);
        digest.add_time(world_->guest_waits_since(n).value_or(0));
    }
    digest.add(path.had_fault ? 1 : 0);
    return digest.value();
}

bool Exploration::is_new(std::uint64_t state, const Path& path) {
    std::uint32_t& known = seen_[state];
    if (known == 0) ++states;
    if (known > path.acts_left) return false;
    known = path.acts_left + 1;
    return true;
}

/// The device comes back, when drivers no longer wait for answers, or the reader of a stream reads
/// on. False: nothing was missing.
bool Exploration::help(Path& path) {
    vgpu_pf& pf = *world_->rig.pf;
    const bool is_full = pf.stream.kind == VGPU_STREAM_SAVE && world_->rig.gpu.stream_room;
    if (pf.device.is_attached && !is_full) return false;
    path.text += is_full ? " (reads)" : " (device back)";
    if (is_full) {
        world_->rig.gpu.stream_room.reset();
        vgpu_pf_stream_ready(&pf);
    } else {
        for (std::uint32_t n = kFirst; n <= kVfs; ++n) world_->guest_forgets(n);
        world_->get_device_back();
    }
    path.acted_at = world_->rig.gpu.now();
    return true;
}

std::string Exploration::check_rest() {
    for (std::uint32_t n = kFirst; n <= kVfs; ++n)
        if (world_->guest_waits_since(n))
            return "the guest of VF" + std::to_string(n) + " waits for an answer";
    return world_->check_rest();
}

std::string Exploration::check_waits(Path& path) {
    if (!world_->rig.pf->device.is_attached) {
        std::ranges::fill(path.since, 0u);
        return "";
    }
    const std::uint64_t now = world_->rig.gpu.now();
    const std::uint64_t limit = kGapUs * kUs + kGapSlack + (path.had_fault ? kFaultLimit : 0);
    for (std::uint32_t n = kFirst; n <= kVfs; ++n) {
        ModelGpu& gpu = world_->rig.gpu;
        const bool is_served = gpu.loaded() == n && gpu.is_running();
        const bool waits = vgpu_vf_is_runnable(&world_->rig.vf(n)) && gpu.vf(n).work_ns != 0;
        if (!waits || is_served)
            path.since[n] = 0;
        else if (path.since[n] == 0)
            path.since[n] = now;
        const std::string name = "VF" + std::to_string(n);
        if (path.since[n] != 0 && now - path.since[n] > limit) return name + " is starved";
        // a message whose access fails is lost; the driver's own limit ends its wait
        if (path.had_fault && gpu.accesses_failed != 0) world_->guest_forgets(n);
        const std::uint64_t asked = world_->guest_waits_since(n).value_or(now);
        if (now - asked > (path.had_fault ? kDriverLimit : kAnswerLimit))
            return "the guest of " + name + " gets no answer";
    }
    return "";
}

std::string Exploration::check(Path& path) {
    std::string bad = world_->rig.pf->device.is_attached ? world_->check_engine() : "";
    if (!bad.empty()) return bad;
    if (world_->rig.pf->scheduler.mismatches != 0) return "the scheduler met an impossible input";
    if (world_->rig.gpu.calls_back != 0) return "a service called the core";
    for (std::uint32_t n = kFirst; n <= kVfs; ++n)
        if (world_->rig.vf(n).control.mismatches != 0) return "an impossible transition";
    return check_waits(path);
}

void Exploration::step(Path& path) {
    ModelGpu& gpu = world_->rig.gpu;
    ++transitions;
    path.text += ".";
    gpu.run_until(std::min(gpu.next_event(), gpu.now() + kSecond));
    gpu.log_lines.clear();
    gpu.stream_out.clear();  // nobody reads it, and each copy of the state would contain it
}

void Exploration::branch(const Path& path) {
    const Adversity::Snapshot here = world_->save();
    for (const Act& act : acts()) {
        if (!bound_.is_whole && !act.is_short) continue;
        if (act.is_fault ? !may_fail(path) : path.acts_left == 0) continue;
        Path next = path;
        if (act.is_fault)
            next.had_fault = true;
        else
            --next.acts_left;
        next.text += " " + act.name;
        next.acted_at = world_->rig.gpu.now();
        ++transitions;
        act.happen(*world_, act.vf);
        follow(next);
        world_->restore(here);
    }
}

/// A path without further acts: it goes on until it has come round to where it was and nothing is
/// pending, or meets another path. At each new state, each act is tried.
void Exploration::follow(Path path) {
    std::unordered_set<std::uint64_t> own;
    std::uint32_t old_steps = 0;
    for (;;) {
        const std::string bad = check(path);
        if (!bad.empty()) return report(path, bad);
        const std::uint64_t here = digest(path);
        const bool is_mine = !own.insert(here).second;
        if (!is_mine && !is_new(here, path)) return;
        old_steps = is_mine ? old_steps + 1 : 0;
        if (!is_mine && (path.acts_left != 0 || may_fail(path))) branch(path);
        const bool is_late = world_->rig.gpu.now() - path.acted_at > kRestLimit;
        if (old_steps > kRound || is_late) {
            if (help(path)) continue;
            const std::string pending = check_rest();
            if (pending.empty()) return;
            if (is_late) return report(path, pending);
        }
        step(path);
    }
}

void Exploration::explore(const Root& root) {
    Adversity world(kSetup);
    world_ = &world;
    for (std::uint32_t vf = kFirst; vf <= kVfs; ++vf) world.rig.gpu.give_work(vf, kEndless);
    world.rig.gpu.run_for(kSecond);
    root.prepare(world);
    Path path;
    path.acts_left = bound_.acts;
    path.text = root.name;
    path.acted_at = world.rig.gpu.now();
    follow(path);
    world_ = nullptr;
}

}  // namespace vgpu::test
