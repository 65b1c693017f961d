// SPDX-License-Identifier: MIT
//
// GpuModel: operators' requests. GpuModel checks a request that changes definitions, makes the
// change durable, then requests it from the PF core. GpuModel rolls back a failed request, unless
// the PF core is lost. The error says why the request failed and, where possible, what would work.
#include "daemon/service/config/capacity.h"
#include "daemon/service/gpu/gpu.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace vgpu::daemon {

namespace {

/// What a VGPU_PF_OP_CONTROL action requires.
struct ActionRow {
    vgpu_pf_control_action action;
    std::string_view verb;  ///< for messages
    Change needed;          ///< the change that the driver must offer for the action
    bool takes_engine;  ///< true if the action takes the engine from a client that has the VF open
    bool ends_work;     ///< true if the action ends the work of the VF's owner
};

constexpr std::array kActions{
    ActionRow{VGPU_PF_PAUSE, "pause", Change::Pause, true, false},
    ActionRow{VGPU_PF_RESUME, "resume", Change::Pause, false, false},
    ActionRow{VGPU_PF_STOP, "stop", Change::Stop, true, false},
    ActionRow{VGPU_PF_RESET, "reset", Change::Reset, false, true},
    ActionRow{VGPU_PF_CLEAR_QUARANTINE, "clear-quarantine", Change::Reset, false, false},
};

const ActionRow& row_of_action(vgpu_pf_control_action action) {
    return *std::find_if(kActions.begin(), kActions.end(),
                         [action](const ActionRow& row) { return row.action == action; });
}

/// The action to send to the PF core. The PF core resumes only PAUSED VFs
/// (pf-driver/core/vf/control.c), so vgpud sends the resume of a STOPPED VF as a reset.
vgpu_pf_control_action effective_action(vgpu_pf_control_action desired, std::uint32_t state) {
    return desired == VGPU_PF_RESUME && state == VGPU_PF_VF_STOPPED ? VGPU_PF_RESET : desired;
}

/// WrongState for a resume or reset of a VF in quarantine, which only VGPU_PF_CLEAR_QUARANTINE
/// ends.
Result<> check_quarantine(vgpu_pf_control_action action, std::uint32_t state,
                          const std::string& target) {
    const bool returns_to_service = action == VGPU_PF_RESUME || action == VGPU_PF_RESET;
    if (state != VGPU_PF_VF_QUARANTINED || !returns_to_service) return {};
    return fail(ErrorId::WrongState,
                fmt::format("{} is in quarantine: its guest exceeded a guard limit; 'vgpuctl "
                            "resume {} --clear-quarantine' ends the quarantine",
                            target, target));
}

/// Adds the VF and the action to a refusal of the PF core. Returns other errors unchanged.
Error with_context(Error error, std::string_view target, std::string_view verb) {
    if (error.id == ErrorId::PfRefused)
        error.cause = fmt::format("{}: {} refused: {}", target, verb, error.cause);
    return error;
}

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
    return value / unit * unit;
}

}  // namespace

Result<> GpuModel::check_usable() const {
    TRY_VOID(ports_.store.writable(id_));
    return check_in_reach();
}

Result<> GpuModel::check_in_reach() const {
    const std::string why = fmt::format("{}: {}", id_, message_);
    if (state_ == GpuState::VersionMismatch) return fail(ErrorId::VersionMismatch, why);
    if (!pf_.is_connected()) return fail(ErrorId::PfLost, why);
    if (state_ == GpuState::DeviceLost) return fail(ErrorId::DeviceLost, why);
    return {};
}

Result<> GpuModel::check_known(std::uint32_t vf) const {
    if (vfs_.contains(vf)) return {};
    return fail(ErrorId::NoSuchVf, fmt::format("{} has no VF {} in service", id_, vf));
}

Result<> GpuModel::refresh_before_change(std::uint32_t vf) {
    TRY_VOID(check_usable());
    TRY_VOID(check_known(vf));
    refresh(vf);
    TRY_VOID(check_usable());
    return check_known(vf);
}

Result<> GpuModel::check_vf(std::uint32_t vf, const Uuid& uuid) {
    TRY_VOID(refresh_before_change(vf));
    const Vf& one = vfs_.at(vf);
    Uuid found = record_.uuid(vf).value_or(uuid);
    if (found == uuid && !one.is_absent()) found = one.active.uuid.value_or(uuid);
    if (found == uuid) return {};
    return fail(ErrorId::WrongState,
                fmt::format("{}/vf{} is now another VF (UUID {}), not the one with UUID {}", id_,
                            vf, uuid_text(found), uuid_text(uuid)));
}

/// The first free VF number that exists or can be enabled, and whose function no client has open,
/// because a client that has the function open would have access to the new VF. If there is none,
/// the first free number. NoFreeVf if no number is free.
Result<std::uint32_t> GpuModel::free_vf() {
    const GpuRecord record = record_.get();
    const bool can_enable = abilities_->can(Change::Vfs);
    std::optional<std::uint32_t> second_choice;
    for (std::uint32_t vf = 1; vf <= info_.total_vfs; ++vf) {
        if (vfs_.contains(vf) || record.vfs.contains(vf)) continue;
        const auto facts = pf_.ask(&Backend::get_vf, vf);
        if (!facts) return tl::make_unexpected(facts.error());
        const bool is_possible = can_enable || vf <= info_.enabled_vfs;
        if (is_possible && !facts->is_attached) return vf;
        if (!second_choice) second_choice = vf;
    }
    if (second_choice) return *second_choice;
    return fail(ErrorId::NoFreeVf,
                fmt::format("all {} VFs of {} are in use or being scrubbed", info_.total_vfs, id_));
}

/// The number of a new VF: request.vf, or free_vf() if request.vf is 0. NoFreeVf if the requested
/// number does not exist or is in use.
Result<std::uint32_t> GpuModel::vf_for(const CreateRequest& request) {
    if (request.vf == 0) return free_vf();
    const bool exists = request.vf <= info_.total_vfs;
    if (exists && !vfs_.contains(request.vf)) return request.vf;
    return fail(ErrorId::NoFreeVf,
                fmt::format("{}/vf{} {}", id_, request.vf,
                            exists ? "is in use or being scrubbed" : "does not exist"));
}

std::uint64_t GpuModel::vram_available() const {
    const VramFacts vram = info_.vram.value_or(VramFacts{});
    const Ability& ability = info_.abilities[Change::VramBytes];
    return round_down(std::min({vram.free_bytes, vram.largest_free, ability.max}), ability.unit);
}

/// The VRAM of a new VF in bytes. If the request has no size: free VRAM / number of free VF
/// numbers, at most vram_available(), so that VFs that are created without a size get equal parts;
/// NoVram if no VRAM is left. 0 if the request has no size and the driver decides.
Result<std::uint64_t> GpuModel::vram_for(const CreateRequest& request) const {
    if (request.spec.resources.vram_bytes > 0 || !abilities_->can(Change::VramBytes))
        return request.spec.resources.vram_bytes;
    const std::uint64_t vfs_left =
        info_.total_vfs - std::min<std::uint64_t>(info_.total_vfs - 1, vfs_.size());
    const std::uint64_t part = std::min(
        vram_available(), round_down(info_.vram.value_or(VramFacts{}).free_bytes / vfs_left,
                                     info_.abilities[Change::VramBytes].unit));
    if (part > 0) return part;
    return fail(ErrorId::NoVram, fmt::format("{} has no VRAM left", id_));
}

/// Checks the VF as a plan does, and checks that enough VRAM for it is free now.
Result<> GpuModel::check_room(const VfSpec& desired) const {
    TRY_VOID(check_capacity(capacity(), desired));
    const std::uint64_t vram = desired.resources.vram_bytes, available = vram_available();
    if (vram <= available || !abilities_->can(Change::VramBytes)) return {};
    // check_capacity() allows at most ability.max, so free_bytes or largest_free is too small
    return fail(ErrorId::NoVram,
                fmt::format("VRAM: {} wanted, {} free on {}, short by {}; a VF of up to {} "
                            "would fit",
                            size_text(vram), size_text(info_.vram.value_or(VramFacts{}).free_bytes),
                            id_, size_text(vram - available), size_text(available)));
}

/// Checks that the VFs of `record` can be scheduled together. Counts paused VFs, but no VF that is
/// being destroyed.
Result<> GpuModel::admit(const GpuRecord& record) const {
    std::vector<VfSpec> vfs;
    for (const auto& [vf, one] : record.vfs)
        if (!one.is_releasing) vfs.push_back(one.spec);
    return daemon::admit(capacity(), record.settings, vfs);
}

/// Checks that the VFs are as idle as the driver requires for the new VF. If the number of the new
/// VF is not enabled yet, the driver must enable more VFs, which may require all VFs to be idle.
Result<> GpuModel::check_new(const VfRecord& desired) const {
    Need need = need_of(*abilities_, differences(VfSpec{}, desired.spec));
    if (desired.vf > info_.enabled_vfs) {
        TRY_VOID(check_offered(id_, *abilities_, Change::Vfs, ""));
        need = {(*abilities_)[Change::Vfs].needs, Change::Vfs};
    }
    return check_all_idle(need, fmt::format("'{}'", desired.spec.name), {});
}

Result<std::uint32_t> GpuModel::create(const CreateRequest& request) {
    TRY_VOID(check_usable());
    TRY_VOID(check_gpu());  // reads the GPU again; the device may be lost now
    TRY_VOID(check_in_reach());
    TRY(const std::uint32_t vf, vf_for(request));
    VfRecord desired{.vf = vf, .spec = request.spec, .owner = request.owner};
    TRY(desired.spec.resources.vram_bytes, vram_for(request));
    if (desired.spec.name.empty()) desired.spec.name = fmt::format("{}-vf{}", id_, vf);
    if (desired.spec.uuid == Uuid{}) desired.spec.uuid = make_uuid();
    TRY_VOID(check_room(desired.spec));
    TRY_VOID(check_new(desired));
    const GpuRecord before = record_.get();
    GpuRecord after = before;
    after.vfs[vf] = desired;
    TRY_VOID(admit(after));
    TRY_VOID(commit(after));
    if (auto made = provision(desired); !made) {
        undo_create(desired, before);
        return tl::make_unexpected(
            with_context(made.error(), fmt::format("{}/vf{}", id_, vf), "create"));
    }
    refresh_members(ports_.clock.now());
    make_refresh_due();
    return vf;
}

/// If the PF core is lost, it may have provisioned the VF. Then the VF stays on record as
/// releasing, and vgpud releases the VF when it attaches again.
void GpuModel::undo_create(const VfRecord& desired, const GpuRecord& before) {
    GpuRecord after = before;
    if (pf_.is_connected()) {
        // provision() may have failed before it set the assignment mode.
        if (ports_.assignment_mode && ports_.assignment_mode->get(desired.vf) ==
                                          desired.spec.assignment_policy.assignment_mode)
            reset_assignment_mode(desired);
    } else {
        after.vfs[desired.vf] = desired;
        after.vfs[desired.vf].is_releasing = true;
    }
    put(desired.vf, after);
}

Result<> GpuModel::check_attached(std::uint32_t vf, std::string_view verb, Force force) const {
    const Vf& one = vfs_.at(vf);
    if (!one.active.is_attached || force == Force::Yes) return {};
    const std::string socket = socket_of(vf), client = client_of(vf);
    return fail(
        ErrorId::WrongState,
        fmt::format("{}/vf{} ('{}') is attached: {} has it open{}, and its driver would lose the "
                    "VF; shut down the client first, or {} the VF with option 'force'",
                    id_, vf, one.defined.spec.name, client.empty() ? "a client" : client,
                    socket.empty() ? "" : " (" + socket + ")", verb));
}

Result<> GpuModel::check_all_idle(Need need, std::string_view whose,
                                  const Requester& requester) const {
    if (need.needs != Needs::AllIdle) return {};
    std::vector<std::string> users = info_.other_users;
    const std::set<std::uint32_t> running = vfs_of_running_domains();
    for (const auto& [vf, one] : vfs_) {
        if (vf > info_.enabled_vfs) continue;  // nobody can use a VF that does not exist
        if (one.active.is_attached)
            users.push_back(describe_name(vf) + " is open");
        else if (running.contains(vf))
            users.push_back(fmt::format("{} belongs to {}, which runs", describe_name(vf),
                                        claim_text(one.defined.owner)));
        else if (!check_owner(vf, "set", requester.force, requester.owner))
            users.push_back(
                fmt::format("{} belongs to {}", describe_name(vf), claim_text(one.defined.owner)));
    }
    if (users.empty()) return {};
    return fail(ErrorId::VfsInUse, fmt::format("{}: {} of {} {}, but {}",
                                               describe(id_, *abilities_), words_of(need.change),
                                               whose, text_of(need.needs), fmt::join(users, ", ")));
}

Result<> GpuModel::destroy(std::uint32_t vf, Force force, const std::string& by) {
    TRY_VOID(refresh_before_change(vf));
    const VfFacts active = vfs_.at(vf).active;
    const bool is_scrubbing = active.state == VGPU_PF_VF_SCRUBBING;
    if (is_scrubbing && !is_recreated(vf)) return {};
    if (!is_scrubbing) TRY_VOID(check_attached(vf, "destroy", force));
    TRY_VOID(check_owner(vf, "destroy", force, by));
    if (is_scrubbing) return cancel_recreate(vf);
    if (active.state == VGPU_PF_VF_ABSENT) return forget_definition(vf);
    const GpuRecord before = record_.get();
    GpuRecord after = before;
    const bool is_defined = after.vfs.contains(vf) && check_defined(vf);
    if (is_defined) after.vfs[vf].is_releasing = true;
    TRY_VOID(commit(after));
    if (const auto released = pf_.ask(&Backend::release, vf, active.generation); !released) {
        if (pf_.is_connected()) put(vf, before);
        return tl::make_unexpected(
            with_context(released.error(), fmt::format("{}/vf{}", id_, vf), "destroy"));
    }
    refresh(vf);
    refresh_members(ports_.clock.now());
    return {};
}

/// True if vgpud recreates the VF after its scrub.
bool GpuModel::is_recreated(std::uint32_t vf) const {
    const GpuRecord record = record_.get();
    const auto known = record.vfs.find(vf);
    return known != record.vfs.end() && !known->second.is_releasing &&
           known->second.spec.uuid == vfs_.at(vf).defined.spec.uuid;
}

/// Destroys a VF that is being scrubbed and would otherwise be recreated. The scrub continues;
/// finish_scrub() then uses the new record.
Result<> GpuModel::cancel_recreate(std::uint32_t vf) {
    GpuRecord record = record_.get();
    VfRecord& one = record.vfs.at(vf);
    one.is_releasing = true;
    one.next.reset();
    TRY_VOID(commit(record));
    refresh_members(ports_.clock.now());
    return {};
}

Result<> GpuModel::change(std::uint32_t vf, const VfChange& change, const Requester& requester) {
    TRY_VOID(ports_.store.writable(id_));
    TRY_VOID(check_known(vf));
    TRY_VOID(check_defined(vf));
    const GpuRecord before = record_.get();
    GpuRecord record = before;
    apply(change, record_in(record, vf).spec);
    TRY_VOID(apply_settings(before, record, requester));
    are_members_stale_ = true;
    only_changed_vf_ = vf;
    return {};
}

Result<> GpuModel::change_gpu(const GpuChange& change) {
    TRY_VOID(ports_.store.writable(id_));
    const GpuRecord before = record_.get();
    GpuRecord record = before;
    apply(change, record.settings);
    TRY_VOID(apply_settings(before, record, {}));
    are_members_stale_ = true;
    return {};
}

Result<> GpuModel::control(std::uint32_t vf, vgpu_pf_control_action action, Force force,
                           const std::string& by) {
    TRY_VOID(refresh_before_change(vf));
    const VfFacts active = vfs_.at(vf).active;
    const ActionRow& row = row_of_action(action);
    TRY_VOID(check_offered(id_, *abilities_, row.needed, ""));
    const std::string target = fmt::format("{}/vf{}", id_, vf);
    TRY_VOID(check_in_service(vf));
    if (row.takes_engine) TRY_VOID(check_attached(vf, row.verb, force));
    if (row.ends_work) TRY_VOID(check_owner(vf, row.verb, force, by));
    TRY_VOID(check_quarantine(action, active.state, target));
    if (const auto done = pf_.ask(&Backend::control, vf, active.generation,
                                  effective_action(action, active.state));
        !done) {
        return tl::make_unexpected(with_context(done.error(), target, row.verb));
    }
    refresh(vf);
    refresh_members(ports_.clock.now());
    return {};
}

Result<> GpuModel::dump(int fd) {
    if (!pf_.is_connected()) return fail(ErrorId::PfLost, fmt::format("{}: {}", id_, message_));
    return pf_.ask(&Backend::dump, fd);
}

void GpuModel::forget(std::uint32_t vf) {
    vfs_.erase(vf);
    waits_.forget(vf);
    schedule_.forget_service(vf);
}

}  // namespace vgpu::daemon
