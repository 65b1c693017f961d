// SPDX-License-Identifier: MIT
#include "tests/unit/core/adversity.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "pf-driver/hw/regs.h"

namespace vgpu::test {
namespace {

constexpr std::uint32_t kQuantumUs = 20'000;
constexpr std::size_t kCoreBytes = offsetof(vgpu_pf, scratch);  ///< the rest lives for one call

const Adversity::Trouble kNone{"Nothing", [](Adversity&) {}};

vgpu_pf_scheduler& scheduler(Adversity& world) {
    return world.rig.pf->scheduler;
}

bool runs(Adversity& world, std::uint32_t vf) {
    return scheduler(world).state == VGPU_SCHEDULER_RUNNING && scheduler(world).run.vf == vf;
}

bool switches(Adversity& world, std::uint32_t from, std::uint32_t to) {
    return scheduler(world).state == VGPU_SCHEDULER_SWITCHING && scheduler(world).run.vf == from &&
           scheduler(world).next.vf == to;
}

void give_all_work(Adversity& world) {
    for (std::uint32_t vf = 1; vf <= Adversity::kVfs; ++vf) world.rig.gpu.give_work(vf, kEndless);
}

void give_work_to(Adversity& world, std::uint32_t vf) {
    world.rig.gpu.give_work(vf, kEndless);
}

void fail_step(Adversity& world, gpuiov_command step, FaultKind kind) {
    for (std::uint32_t vf = 1; vf <= Adversity::kVfs; ++vf)
        world.rig.gpu.faults.push_back({step, vf, kind});
}

/// Commands that VF1 hangs in have failed, and the engine is not free yet.
bool is_broken(Adversity& world) {
    return scheduler(world).state == VGPU_SCHEDULER_BROKEN;
}

void hang_for_long(Adversity& world, std::uint32_t vf) {
    give_all_work(world);
    world.rig.gpu.vf(vf).flr_never_ends = true;
    world.rig.gpu.hang(vf);
}

void begin_device_reset(Adversity& world) {
    give_all_work(world);
    world.rig.gpu.device_reset_ns = 100 * kMs;
    world.rig.gpu.vf(Adversity::kThird).flr_never_ends = true;
    world.ask_control(Adversity::kThird, VGPU_PF_RESET);
}

void park_at_its_cap(Adversity& world) {
    vgpu_pf_contract cap{};
    cap.rate_ppm = 100'000;
    cap.burst_ns = 5 * kMs;
    world.rig.set_contracts({{Adversity::kSubject, kQuantumUs}}, {{Adversity::kSubject, cap}});
    give_work_to(world, Adversity::kSubject);
}

template <std::uint32_t Message> void send(Adversity& world, std::uint32_t vf) {
    world.guest_forgets(vf);
    world.rig.gpu.guest_sends(vf, Message);
}

template <std::uint32_t Message> void await_answer(Adversity& world, std::uint32_t vf) {
    world.guest_asks(vf, Message);
}

void reset_function(Adversity& world, std::uint32_t vf) {
    world.guest_forgets(vf);
    world.rig.gpu.guest_resets_function(vf);
}

void detach(Adversity& world, std::uint32_t vf) {
    world.guest_forgets(vf);
    world.rig.gpu.attach_client(vf, false);
}

template <vgpu_pf_control_action Action> void control(Adversity& world, std::uint32_t vf) {
    world.ask_control(vf, Action);
}

template <std::uint32_t Op> void about(Adversity& world, std::uint32_t vf) {
    world.ask_about(Op, vf);
}

/// Whoever is at the other end is slow.
template <std::uint32_t Op> void stream(Adversity& world, std::uint32_t vf) {
    world.rig.gpu.stream_room = 100;
    world.ask(Op, vgpu_pf_stream{sizeof(vgpu_pf_stream), vf, 0, 0, 0});
}

}  // namespace

const std::vector<Adversity::Event>& Adversity::events() {
    static const std::vector<Event> kEvents{
        {"GuestFlr", reset_function},
        {"InitAccess", &await_answer<MAILBOX_REQ_GPU_INIT_ACCESS>},
        {"InitRelease", &send<MAILBOX_REL_GPU_INIT_ACCESS>},
        {"FiniAccess", &await_answer<MAILBOX_REQ_GPU_FINI_ACCESS>},
        {"DriverGone", &send<MAILBOX_REL_GPU_FINI_ACCESS>},
        {"GuestReset", &await_answer<MAILBOX_REQ_GPU_RESET_ACCESS>},
        {"ReadyToReset", &await_answer<MAILBOX_READY_TO_RESET>},
        {"Detach", detach},
        {"Attach", [](Adversity& w, std::uint32_t vf) { w.rig.gpu.attach_client(vf, true); }},
        {"Pause", &control<VGPU_PF_PAUSE>},
        {"Resume", &control<VGPU_PF_RESUME>},
        {"Stop", &control<VGPU_PF_STOP>},
        {"Reset", &control<VGPU_PF_RESET>},
        {"ClearQuarantine", &control<VGPU_PF_CLEAR_QUARANTINE>},
        {"Release", &about<VGPU_PF_OP_RELEASE>},
        {"Durable", &about<VGPU_PF_OP_SCRUB_DURABLE>},
        {"Verify", &about<VGPU_PF_OP_VERIFY_ZERO>},
        {"Provision", [](Adversity& w, std::uint32_t vf) { w.provision(vf); }},
        {"Save", &stream<VGPU_PF_OP_SAVE>},
        {"Restore", &stream<VGPU_PF_OP_RESTORE>},
        {"Cancel", [](Adversity& w, std::uint32_t) { w.cancel_last(); }},
        {"GuardPause",
         [](Adversity& w, std::uint32_t vf) {
             w.post(vf, VGPU_VF_EVENT_PAUSE, VGPU_PF_REASON_GUARD);
         }},
        {"Quarantine",
         [](Adversity& w, std::uint32_t vf) {
             w.post(vf, VGPU_VF_EVENT_QUARANTINE, VGPU_PF_REASON_GUARD);
         }},
        {"AccessTimeout",
         [](Adversity& w, std::uint32_t vf) {
             w.post(vf, VGPU_VF_EVENT_RESET, VGPU_PF_REASON_FULL_ACCESS_TIMEOUT);
         }},
    };
    return kEvents;
}

const std::vector<Adversity::Situation>& Adversity::situations() {
    static const std::vector<Situation> kSituations{
        {"Empty", [](Adversity&) {},
         [](Adversity& w) { return scheduler(w).state == VGPU_SCHEDULER_EMPTY; }},
        {"RunsIt", give_all_work, [](Adversity& w) { return runs(w, kSubject); }},
        {"RestsOnIt", [](Adversity& w) { w.rig.gpu.give_work(kSubject, kMs); },
         [](Adversity& w) {
             return runs(w, kSubject) && scheduler(w).run.kind == VGPU_RUN_IDLE_RESIDENT;
         }},
        {"RunsAnother", give_all_work, [](Adversity& w) { return runs(w, kNeighbour); }},
        {"SwitchesToIt", give_all_work,
         [](Adversity& w) { return switches(w, kNeighbour, kSubject); }},
        {"SwitchesToItFromNone", [](Adversity& w) { give_work_to(w, kSubject); },
         [](Adversity& w) { return switches(w, 0, kSubject); }},
        {"SwitchesFromIt", give_all_work,
         [](Adversity& w) { return switches(w, kSubject, kThird); }},
        {"SwitchesOthers", give_all_work,
         [](Adversity& w) { return switches(w, kThird, kNeighbour); }},
        {"ParkedOnIt", park_at_its_cap,
         [](Adversity& w) {
             return scheduler(w).state == VGPU_SCHEDULER_EXPIRED && scheduler(w).run.vf == kSubject;
         }},
        {"BrokenByIt", [](Adversity& w) { hang_for_long(w, kSubject); }, is_broken},
        {"BrokenByAnother", [](Adversity& w) { hang_for_long(w, kNeighbour); }, is_broken},
        {"DeviceReset", begin_device_reset,
         [](Adversity& w) { return w.rig.pf->device_reset.is_under_way; }},
        {"NoDevice", [](Adversity& w) { w.lose_device(); },
         [](Adversity& w) { return !w.rig.pf->device.is_attached; }},
    };
    return kSituations;
}

const std::vector<Adversity::Trouble>& Adversity::troubles() {
    static const std::vector<Trouble> kTroubles{
        kNone,
        {"NeighbourHangs", [](Adversity& w) { w.rig.gpu.hang(kNeighbour); }},
        {"ItHangs", [](Adversity& w) { w.rig.gpu.hang(kSubject); }},
        {"IdleRefused", [](Adversity& w) { fail_step(w, GPUIOV_CMD_IDLE, FaultKind::Aborted); }},
        {"SaveLost", [](Adversity& w) { fail_step(w, GPUIOV_CMD_SAVE, FaultKind::Lost); }},
        {"LoadLost", [](Adversity& w) { fail_step(w, GPUIOV_CMD_LOAD, FaultKind::Lost); }},
        {"LoadRefused", [](Adversity& w) { fail_step(w, GPUIOV_CMD_LOAD, FaultKind::Aborted); }},
        {"RunLost", [](Adversity& w) { fail_step(w, GPUIOV_CMD_RUN, FaultKind::Lost); }},
        {"RunRefused", [](Adversity& w) { fail_step(w, GPUIOV_CMD_RUN, FaultKind::Aborted); }},
        {"InterruptsLost", [](Adversity& w) { w.rig.gpu.lose_interrupts = true; }},
        {"FlrNeverEnds", [](Adversity& w) { w.rig.gpu.vf(kSubject).flr_never_ends = true; }},
        {"ItHangsForEver",
         [](Adversity& w) {
             w.rig.gpu.hang(kSubject);
             w.rig.gpu.vf(kSubject).flr_never_ends = true;
         }},
        {"RefusesForEver",
         [](Adversity& w) {
             fail_step(w, GPUIOV_CMD_IDLE, FaultKind::Aborted);
             w.rig.gpu.vf(kSubject).flr_never_ends = true;
         }},
        {"NothingEverEnds",
         [](Adversity& w) {
             w.rig.gpu.hang(kNeighbour);
             w.rig.gpu.vf(kNeighbour).flr_never_ends = true;
             w.rig.gpu.device_reset_ns = 5 * kSecond;
         }},
        {"AnAccessFails", [](Adversity& w) { w.rig.gpu.fail_after = 3; }},
        {"ScrubsFail", [](Adversity& w) { w.rig.gpu.verify_fails = true; }},
        {"BulkIsSlow", [](Adversity& w) { w.rig.gpu.bulk_ns = 200 * kMs; }},
    };
    return kTroubles;
}

Adversity::Adversity(const Setup& setup)
    : rig({.total_vfs = setup.vfs, .vram_mb = 128},
          [=](vgpu_pf_params& params) { params.is_stepwise = setup.is_stepwise; }),
      setup_(setup) {
    rig.gpu.forward.request_done = [this](std::uint64_t token, int error, const char* message) {
        rig.gpu.done[token] = {error, message};
        if (token > kFirstToken && open_.erase(token) == 0) wrong_ = "an answer came twice";
    };
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) {
        provision(vf);
        run_until_quiet();
    }
    set_table();
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) {
        rig.gpu.attach_client(vf, true);
        rig.load_driver(vf);
    }
}

int Adversity::set_table() {
    std::vector<vgpu_pf_run_entry> table;
    std::map<std::uint32_t, std::uint32_t> weights, gaps;
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) {
        table.push_back({vf, setup_.quantum_us});
        if (setup_.max_gap_us == 0) continue;
        weights[vf] = 1;
        gaps[vf] = setup_.max_gap_us;
    }
    return rig.set_weights(table, weights, gaps);
}

void Adversity::restart_core() {
    open_.clear();
    rig.restart_core();
}

Adversity::Snapshot Adversity::save() const {
    const auto* core = static_cast<const std::uint8_t*>(static_cast<const void*>(rig.pf.get()));
    Snapshot snapshot{rig.gpu.save(), {core, core + kCoreBytes}, last_token_, open_, {}};
    std::ranges::copy(asked_, snapshot.asked);
    return snapshot;
}

void Adversity::restore(const Snapshot& snapshot) {
    rig.gpu.restore(snapshot.gpu);
    std::memcpy(rig.pf.get(), snapshot.core.data(), kCoreBytes);
    last_token_ = snapshot.last_token;
    open_ = snapshot.open;
    std::ranges::copy(snapshot.asked, asked_);
}

std::optional<std::uint64_t> Adversity::guest_waits_since(std::uint32_t vf) {
    const auto& guest = rig.gpu.vf(vf);
    if (!asked_[vf] || guest.received.size() > asked_[vf]->received) return std::nullopt;
    // a driver sends a message again if nobody acknowledges it
    if (guest.to_pf_lost) return std::nullopt;
    return asked_[vf]->time_ns;
}

bool Adversity::reach(const Situation& situation, const Trouble& trouble) {
    constexpr int kSteps = 3000;
    situation.prepare(*this);
    // Long enough for VFs to take turns; a switch fails while it is under way.
    const bool is_switch = std::string(situation.name).starts_with("Switches");
    if (is_switch) trouble.arise(*this);
    for (int i = 0; i < kSteps && !situation.is_reached(*this); ++i)
        rig.gpu.run_until(std::min(rig.gpu.next_event(), rig.gpu.now() + kMs));
    const bool is_reached = situation.is_reached(*this);
    if (!is_switch) trouble.arise(*this);
    return is_reached;
}

void Adversity::ask_control(std::uint32_t vf, vgpu_pf_control_action action) {
    ask(VGPU_PF_OP_CONTROL,
        vgpu_pf_control{sizeof(vgpu_pf_control), vf, 0, static_cast<std::uint32_t>(action)});
}

void Adversity::ask_about(std::uint32_t op, std::uint32_t vf) {
    ask(op, vgpu_pf_vf_ref{sizeof(vgpu_pf_vf_ref), vf, 0, 0});
}

void Adversity::provision(std::uint32_t vf) {
    vgpu_pf_provision request{};
    request.size = sizeof(request);
    request.vf = vf;
    request.vram_bytes = setup_.vram_mib << 20;
    std::ranges::fill(request.guard_limits, UINT32_MAX);
    ask(VGPU_PF_OP_PROVISION, request);
}

void Adversity::cancel_last() {
    if (open_.empty()) return;
    const std::uint64_t token = open_.rbegin()->first;
    // The end of a stream is reported all the same.
    const bool is_stream = rig.pf->stream.kind != VGPU_STREAM_NONE && rig.pf->stream.token == token;
    vgpu_pf_request_cancel(rig.pf.get(), token);
    if (!is_stream) open_.erase(token);
}

void Adversity::guest_asks(std::uint32_t vf, std::uint32_t message) {
    rig.gpu.guest_acknowledges(vf);
    asked_[vf] = {rig.gpu.vf(vf).received.size(), rig.gpu.now()};
    rig.gpu.guest_sends(vf, message);
}

void Adversity::post(std::uint32_t number, vgpu_vf_event event, vgpu_pf_reason reason) {
    vgpu_vf& vf = rig.vf(number);
    if (vgpu_pf_control_allows(&vf, event)) rig.post(number, event, reason);
}

void Adversity::lose_device() {
    rig.gpu.is_gone = true;
    vgpu_pf_surprise_remove(rig.pf.get());
}

void Adversity::get_device_back() {
    if (rig.pf->device.is_attached) return;
    rig.gpu.is_gone = false;
    for (int i = 0; i < 100 && vgpu_pf_attach(rig.pf.get()) != 0; ++i) rig.gpu.run_for(100 * kMs);
    // the core restarts its limit, because it does not know how long the guest has waited
    for (auto& asked : asked_)
        if (asked) asked->time_ns = rig.gpu.now();
}

bool Adversity::is_quiet() {
    for (std::uint32_t n = 1; n <= setup_.vfs; ++n) {
        const vgpu_vf& vf = rig.vf(n);
        if (vf.inbox.events != 0 || vf.state == VGPU_PF_VF_RESETTING) return false;
        if (vf.state == VGPU_PF_VF_SCRUBBING && vf.scrub.stage != VGPU_VF_SCRUB_DONE &&
            !vgpu_pf_scrub_has_failed(&vf))
            return false;
    }
    const vgpu_scheduler_state state = rig.pf->scheduler.state;
    if (!rig.pf->device.is_attached) return open_.empty();
    return open_.empty() && state != VGPU_SCHEDULER_OFF && state != VGPU_SCHEDULER_BROKEN;
}

void Adversity::run_until_quiet() {
    constexpr std::uint64_t kStep = 20 * kMs, kLimit = 20 * kSecond;
    for (std::uint64_t spent = 0; spent < kLimit && !is_quiet(); spent += kStep)
        rig.gpu.run_for(kStep);
}

std::string Adversity::check_rest() {
    if (!wrong_.empty()) return wrong_;
    if (!open_.empty()) return "a request was never answered";
    for (std::uint32_t n = 1; n <= setup_.vfs; ++n) {
        const vgpu_vf& vf = rig.vf(n);
        const std::string who = "VF" + std::to_string(n) + " ";
        if (vf.inbox.events != 0)
            return who + "still has pending " +
                   vgpu_pf_control_event_name(vgpu_vf_severest(vf.inbox.events));
        if (vf.inbox.token != 0) return who + "still has a request";
        if (vf.control.mismatches != 0) return who + "came upon an impossible transition";
        if (vf.state == VGPU_PF_VF_RUNNING && !vgpu_pf_run_engine_holds(rig.pf.get(), &vf))
            return who + "is RUNNING outside the engine";
    }
    return is_quiet() ? "" : "it does not come to rest";
}

/// Within half of what a driver waits.
std::string Adversity::check_answers() {
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) {
        for (int i = 0; i < 31 && guest_waits_since(vf); ++i) rig.gpu.run_for(100 * kMs);
        if (guest_waits_since(vf))
            return "the guest of VF" + std::to_string(vf) + " gets no answer";
    }
    return "";
}

int Adversity::step_towards_service(std::uint32_t vf) {
    switch (rig.vf(vf).state) {
        case VGPU_PF_VF_ABSENT:
            return rig.provision(vf, setup_.vram_mib);
        case VGPU_PF_VF_PAUSED:
            return rig.control(vf, VGPU_PF_RESUME);
        case VGPU_PF_VF_QUARANTINED:
            return rig.control(vf, VGPU_PF_CLEAR_QUARANTINE);
        case VGPU_PF_VF_SCRUBBING:
            if (vgpu_pf_scrub_has_failed(&rig.vf(vf))) return rig.release(vf);
            return rig.durable(vf) == 0 || rig.vf(vf).scrub.stage != VGPU_VF_SCRUB_DONE ? 0 : -EIO;
        case VGPU_PF_VF_READY:
        case VGPU_PF_VF_RUNNING:
            rig.gpu.guest_resets_function(vf);
            return 0;
        case VGPU_PF_VF_RESETTING:
            return 0;
        default:
            return rig.control(vf, VGPU_PF_RESET);
    }
}

std::string Adversity::revive(std::uint32_t vf) {
    const std::string who = "VF" + std::to_string(vf) + " ";
    for (int i = 0; i < 40 && rig.vf(vf).state != VGPU_PF_VF_PROVISIONED; ++i) {
        const vgpu_pf_vf_state state = rig.vf(vf).state;
        const int error = step_towards_service(vf);
        if (error != 0)
            return who + "does not leave " + vgpu_pf_control_state_name(state) + ": " +
                   rig.message();
        rig.gpu.run_for(50 * kMs);
    }
    if (rig.vf(vf).state != VGPU_PF_VF_PROVISIONED)
        return who + "stays " + vgpu_pf_control_state_name(rig.vf(vf).state);
    return load(vf);
}

std::string Adversity::load(std::uint32_t vf) {
    const std::string who = "VF" + std::to_string(vf) + " ";
    auto& received = rig.gpu.vf(vf).received;
    rig.gpu.guest_acknowledges(vf);
    rig.gpu.run_for(kMs);
    received.clear();
    rig.gpu.guest_sends(vf, MAILBOX_REQ_GPU_INIT_ACCESS);
    const auto is_answered = [&] {
        return std::ranges::count(received, std::uint32_t{MAILBOX_VF_READY_TO_ACCESS_GPU}) != 0;
    };
    for (int i = 0; i < 50 && !is_answered(); ++i) rig.gpu.run_for(10 * kMs);
    if (!is_answered()) return who + "does not let its driver load";
    rig.gpu.guest_acknowledges(vf);
    rig.gpu.guest_sends(vf, MAILBOX_REL_GPU_INIT_ACCESS);
    rig.gpu.give_work(vf, kEndless);
    rig.gpu.run_for(kMs);
    return "";
}

/// Within a second: whoever ran alone before lets the others go first.
std::string Adversity::check_service() {
    std::uint64_t before[kVfs + 1];
    std::string idle;
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) before[vf] = rig.vf(vf).service.ns;
    for (int i = 0; i < 10; ++i) {
        rig.gpu.run_for(100 * kMs);
        idle.clear();
        for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf)
            if (rig.vf(vf).service.ns - before[vf] < 5 * kMs) idle += " VF" + std::to_string(vf);
        if (idle.empty()) return "";
    }
    return "it does not run:" + idle;
}

std::string Adversity::give_to_next_tenant(std::uint32_t vf) {
    if (rig.release(vf) != 0) return "it cannot be released: " + rig.message();
    run_until_quiet();
    if (rig.durable(vf) != 0) return "it is not scrubbed: " + rig.message();
    if (rig.provision(vf, setup_.vram_mib) != 0) return "it has no next tenant: " + rig.message();
    const vgpu_pf_vf fresh = rig.get_vf(vf);
    if (fresh.flrs + fresh.hangs + fresh.mailbox_messages + fresh.full_access_count +
            fresh.guard_level + fresh.last_error + fresh.service_ns !=
        0)
        return "its next tenant does not start clean";
    return load(vf);
}

std::string Adversity::check_engine() {
    for (std::uint32_t n = 1; n <= setup_.vfs; ++n)
        if (rig.vf(n).inbox.events != 0 && !vgpu_pf_run_engine_holds(rig.pf.get(), &rig.vf(n)))
            return "VF" + std::to_string(n) + " waits for an engine that does not hold it";
    const std::uint32_t vf = rig.gpu.loaded();
    if (vf == 0 || !rig.gpu.is_running() || rig.pf->device_reset.is_under_way) return "";
    if (vgpu_pf_run_engine_holds(rig.pf.get(), &rig.vf(vf))) return "";
    switch (rig.vf(vf).state) {
        case VGPU_PF_VF_PAUSED:
        case VGPU_PF_VF_SCRUBBING:
        case VGPU_PF_VF_ABSENT:
            return "VF" + std::to_string(vf) + " runs though it is " +
                   vgpu_pf_control_state_name(rig.vf(vf).state);
        default:
            return "";
    }
}

/// What is stalled stays so until it is reset; an FLR that did not end does so.
void Adversity::end_trouble() {
    rig.gpu.faults.clear();
    rig.gpu.fail_after.reset();
    rig.gpu.verify_fails = false;
    rig.gpu.lose_interrupts = false;
    rig.gpu.bulk_ns = 20 * kUs;
    rig.gpu.device_reset_ns = kMs;
    for (std::uint32_t vf = 1; vf <= setup_.vfs; ++vf) {
        rig.gpu.vf(vf).hangs = rig.gpu.vf(vf).flr_never_ends = false;
        rig.gpu.set_bank(vf, REG_VGPU_VF0_RESET, 0);
    }
    rig.gpu.stream_room.reset();
    vgpu_pf_stream_ready(rig.pf.get());
}

std::string Adversity::check() {
    rig.gpu.run_for(kSecond);
    end_trouble();
    run_until_quiet();
    get_device_back();
    run_until_quiet();
    std::string wrong = check_rest();
    if (wrong.empty()) wrong = check_answers();
    if (wrong.empty() && set_table() != 0) wrong = "no table is taken: " + rig.message();
    for (std::uint32_t vf = 1; vf <= setup_.vfs && wrong.empty(); ++vf) wrong = revive(vf);
    if (wrong.empty()) wrong = check_service();
    if (wrong.empty()) wrong = give_to_next_tenant(kSubject);
    if (wrong.empty()) wrong = check_service();
    if (wrong.empty()) wrong = check_rest();
    return wrong;
}

}  // namespace vgpu::test
