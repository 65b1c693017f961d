// SPDX-License-Identifier: MIT
//
// The state machine of WorldSwitch: its diagram, its table, its actions.
//
//   Empty --Load,Init--> Loading --Done--> Loaded --Run--> Starting --Done--> Running
//     ^                                    |  ^                               |  |
//     |                                    |  +----------- QuantumEnd --------+  +--Run--> Starting
//     +---Done-- Saving <------Save--------+  |                               |
//                                             +----Done-- Idling <---Idle-----+
//
//   Every arrow, one per line of kRows, plus Reset. A test compares this list with the table:
//     Empty --Load--> Loading          Empty --Init--> Loading        Empty --Clear--> Empty
//     Loading --Done--> Loaded         Loading --Lost--> Stalled
//     Loaded --Run--> Starting         Loaded --Save--> Saving        Loaded --Idle--> Loaded
//     Loaded --Lost--> Stalled
//     Starting --Done--> Running       Starting --Lost--> Stalled
//     Running --Run--> Starting        Running --Idle--> Idling
//     Running --QuantumEnd--> Loaded
//     Idling --Done--> Loaded          Idling --Lost--> Stalled
//     Saving --Done--> Empty           Saving --Lost--> Stalled       any --Reset--> Empty
//
// Loading, Starting, Idling and Saving last as long as their work; a planned fault can prolong them
// (late) or end them in Stalled (lost, wrong). Loaded has Lost because IDLE of a loaded VF is a
// step that a fault can lose. A QuantumEnd that arrives after a command has stopped the VF changes
// no state; its time slice is recorded then, unless the command has recorded it.
#include "pf-driver/softgpu/iov/world_switch.h"

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::iov {

namespace {

using S = SwitchState;
using E = SwitchEvent;

constexpr std::array<std::string_view, kSwitchStates> kStateNames{
    "Empty", "Loading", "Loaded", "Starting", "Running", "Idling", "Saving", "Stalled", "Mismatch"};
constexpr std::array<std::string_view, kSwitchEvents> kEventNames{
    "Load", "Init", "Run", "Idle", "Save", "Clear", "Done", "QuantumEnd", "Lost", "Reset"};

/// Value of ACTIVE_FUNCTION_STATUS, indexed by SwitchState.
constexpr std::array<gpuiov_function_state, kSwitchStates> kFunctionStates{
    GPUIOV_FUNCTION_IDLE,    GPUIOV_FUNCTION_LOADING, GPUIOV_FUNCTION_IDLE,
    GPUIOV_FUNCTION_LOADING, GPUIOV_FUNCTION_ACTIVE,  GPUIOV_FUNCTION_IDLING,
    GPUIOV_FUNCTION_SAVING,  GPUIOV_FUNCTION_STALLED, GPUIOV_FUNCTION_STALLED};

/// Value of CMD_STATUS during a step, indexed by SwitchState; used only in transient states.
constexpr std::array<gpuiov_status, kSwitchStates> kStepStatus{
    GPUIOV_STATUS_PENDING,  GPUIOV_STATUS_LOADING, GPUIOV_STATUS_PENDING,
    GPUIOV_STATUS_ENABLING, GPUIOV_STATUS_PENDING, GPUIOV_STATUS_IDLING,
    GPUIOV_STATUS_SAVING,   GPUIOV_STATUS_PENDING, GPUIOV_STATUS_PENDING};

constexpr bool is_transient(S state) {
    return state == S::Loading || state == S::Starting || state == S::Idling || state == S::Saving;
}

/// The fault point of a step, indexed by SwitchEvent. Sdma fills the entries of events that have no
/// fault point; these entries are never used.
constexpr std::array<FaultPoint, kSwitchEvents> kFaultPoints{
    FaultPoint::Load, FaultPoint::Load, FaultPoint::Run,  FaultPoint::Idle, FaultPoint::Save,
    FaultPoint::Sdma, FaultPoint::Sdma, FaultPoint::Sdma, FaultPoint::Sdma, FaultPoint::Sdma};

constexpr std::size_t at(S state) {
    return static_cast<std::size_t>(state);
}
constexpr std::size_t at(E event) {
    return static_cast<std::size_t>(event);
}

struct Row {
    S from;
    E event;
    WorldSwitch::Cell cell;
};

using Table = std::array<std::array<WorldSwitch::Cell, kSwitchEvents>, kSwitchStates>;

}  // namespace

const WorldSwitch::Cell& WorldSwitch::cell(SwitchState state, SwitchEvent event) {
    using W = WorldSwitch;
    static constexpr std::array kRows{
        Row{S::Empty, E::Load, {S::Loading, &W::enter_loading}},
        Row{S::Empty, E::Init, {S::Loading, &W::enter_loading}},
        Row{S::Empty, E::Clear, {S::Empty, &W::clear_function}},
        Row{S::Loading, E::Done, {S::Loaded, &W::exit_loading}},
        Row{S::Loading, E::Lost, {S::Stalled}},
        Row{S::Loaded, E::Run, {S::Starting}},
        Row{S::Loaded, E::Save, {S::Saving}},
        Row{S::Loaded, E::Idle, {S::Loaded}},
        Row{S::Loaded, E::Lost, {S::Stalled}},
        Row{S::Starting, E::Done, {S::Running, &W::exit_starting}},
        Row{S::Starting, E::Lost, {S::Stalled}},
        Row{S::Running, E::Run, {S::Starting}},
        Row{S::Running, E::Idle, {S::Idling}},
        Row{S::Running, E::QuantumEnd, {S::Loaded}},
        Row{S::Idling, E::Done, {S::Loaded, &W::exit_idling}},
        Row{S::Idling, E::Lost, {S::Stalled}},
        Row{S::Saving, E::Done, {S::Empty, &W::exit_saving}},
        Row{S::Saving, E::Lost, {S::Stalled}},
    };
    static constexpr Table kTable = [] {
        Table table{};
        for (std::size_t s = 0; s < kSwitchStates; ++s) {
            const auto from = static_cast<S>(s);
            for (const E command : {E::Load, E::Init, E::Run, E::Idle, E::Save, E::Clear})
                table[s][at(command)] = {from, nullptr, true};
            table[s][at(E::QuantumEnd)] = {from, nullptr};
            table[s][at(E::Reset)] = {S::Empty, &W::abort_for_reset};
        }
        for (const Row& row : kRows) table[at(row.from)][at(row.event)] = row.cell;
        return table;
    }();
    return kTable[at(state)][at(event)];
}

std::string_view WorldSwitch::name(SwitchState state) {
    return kStateNames[at(state)];
}

std::string_view WorldSwitch::name(SwitchEvent event) {
    return kEventNames[at(event)];
}

WorldSwitch::WorldSwitch(std::uint32_t total_vfs, SwitchPort& port, FaultPlan& faults,
                         const Clock& clock, std::function<void()> notify)
    : total_vfs_(total_vfs),
      port_(port),
      faults_(faults),
      clock_(clock),
      notify_(std::move(notify)) {}

// --- the machine ---------------------------------------------------------------------------------

/// The action runs in the old state, so that the action of Reset still finds the function. A step
/// to Empty then forgets the function, whatever the event was.
void WorldSwitch::step(SwitchEvent event) {
    const SwitchState from = state_;
    const Cell& c = cell(from, event);
    if (c.action != nullptr) (this->*c.action)();
    state_ = c.to;
    if (from != S::Mismatch && state_ == S::Mismatch)
        log::error("world switch: VF{}: {} in {} is impossible; only a reset helps", raw(function_),
                   name(event), name(from));
    log::debug("world switch: VF{}: {} --{}--> {}", raw(function_), name(from), name(event),
               name(state_));
    if (state_ == S::Empty) function_ = kPf;
    publish();
}

void WorldSwitch::enter_loading() {
    function_ = current().function;
}

void WorldSwitch::exit_loading() {
    measure_switching([this] {
        if (current().event == E::Init) port_.clear(function_);
        port_.load(function_);
    });
}

/// RUN of the function that already runs ends the present time slice and begins a new quantum.
void WorldSwitch::exit_starting() {
    park_and_record(VGPU_RUN_END_COMMAND);
    measure_switching([this] { open_run_ = port_.run(function_); });
}

void WorldSwitch::exit_idling() {
    park_and_record(idle_reason());
}

void WorldSwitch::exit_saving() {
    measure_switching([this] { port_.save(function_); });
}

void WorldSwitch::clear_function() {
    port_.clear(current().function);
}

void WorldSwitch::abort_for_reset() {
    if (const auto run = port_.park()) record_run(*run, VGPU_RUN_END_RESET);
    is_step_open_ = false;
    due_.reset();
    if (is_executing_) finish(GPUIOV_STATUS_ABORTED);
}

// --- records -------------------------------------------------------------------------------------

template <typename Work> void WorldSwitch::measure_switching(Work work) {
    const Nanoseconds before = clock_.now();
    work();
    switching_ += clock_.now() - before;
}

/// The reason why IDLE ends the time slice. Call this before the park, because the last wave may
/// end during the park, and the VF would then look idle.
vgpu_hw_run_end WorldSwitch::idle_reason() {
    return port_.has_work(function_) ? VGPU_RUN_END_COMMAND : VGPU_RUN_END_NO_WORK;
}

/// Parks the VF and records its time slice. If the time slice has ended by itself since the command
/// began, records it now: after the next time slice has begun, record_run() would ignore the
/// report.
void WorldSwitch::park_and_record(vgpu_hw_run_end reason) {
    if (const auto run = port_.park()) record_run(*run, reason);
    process_quantum_ends();
}

/// Quantum end and command may both report a time slice; the first report records it.
void WorldSwitch::record_run(const cp::RunReport& run, vgpu_hw_run_end reason) {
    if (open_run_ != run.time_slice) return;  // the time slice is recorded already
    open_run_.reset();
    vgpu_hw_run_log_entry entry{};
    entry.run_start_ns = static_cast<std::uint64_t>(run.start.count());
    entry.run_end_ns = static_cast<std::uint64_t>(run.end.count());
    entry.wave_instructions = run.instructions;
    entry.idle_ns = static_cast<std::uint64_t>(run.idle.count());
    entry.vf = raw(run.vf);
    entry.park_ns = low32(static_cast<std::uint64_t>(run.park.count()));
    entry.reason = reason;
    entry.switch_ns = low32(static_cast<std::uint64_t>(std::exchange(switching_, {}).count()));
    port_.record(entry);
}

void WorldSwitch::publish() {
    const std::scoped_lock lock(mutex_);
    view_.function = function_ == kPf ? std::nullopt : std::optional(function_);
    view_.state = kFunctionStates[at(state_)];
    if (is_executing_ && is_transient(state_))
        view_.status = static_cast<std::uint8_t>(kStepStatus[at(state_)]);
    seen_state_ = state_;
    seen_due_ = due_;
}

SwitchState WorldSwitch::state() const {
    const std::scoped_lock lock(mutex_);
    return seen_state_;
}

// --- commands ------------------------------------------------------------------------------------

/// The steps of a command. If `is_switch` is true, the steps are IDLE and SAVE of the function that
/// the command names, then LOAD and RUN of the next function. Otherwise the only step is `event` of
/// the function that the command names.
struct WorldSwitch::CommandRow {
    bool is_known = false;
    SwitchEvent event = SwitchEvent::Idle;
    bool is_switch = false;
};

const std::array<WorldSwitch::CommandRow, 16> WorldSwitch::kCommands = [] {
    std::array<CommandRow, 16> table{};
    table[GPUIOV_CMD_IDLE] = {true, E::Idle};
    table[GPUIOV_CMD_SAVE] = {true, E::Save};
    table[GPUIOV_CMD_LOAD] = {true, E::Load};
    table[GPUIOV_CMD_RUN] = {true, E::Run};
    table[GPUIOV_CMD_CONTEXT_SWITCH] = {true, E::Idle, true};
    table[GPUIOV_CMD_INIT] = {true, E::Init};
    table[GPUIOV_CMD_CLEAR_VF_STATE] = {true, E::Clear};
    table[GPUIOV_CMD_SHUTDOWN] = {true, E::Clear};
    return table;
}();

namespace {

/// The function that a byte of the command dword names; for an invalid byte, a number that no VF
/// has.
VfId function_of(std::uint32_t byte) {
    constexpr std::uint8_t kNobody = 0xff;
    if (byte == GPUIOV_FCN_PF) return kPf;
    if ((byte & GPUIOV_FCN_VF) == 0) return VfId{kNobody};
    return VfId{static_cast<std::uint8_t>((byte & ~GPUIOV_FCN_VF) + 1)};
}

constexpr std::uint32_t byte_of(std::uint32_t dword, unsigned index) {
    return static_cast<std::uint32_t>(bits(dword, 8 * index, 8));
}

}  // namespace

void WorldSwitch::command(std::uint32_t dword) {
    {
        const std::scoped_lock lock(mutex_);
        if ((view_.command & GPUIOV_CMD_EXECUTE) != 0) return;
        view_.command = dword;
        if ((dword & GPUIOV_CMD_EXECUTE) == 0) return;
        view_.status = GPUIOV_STATUS_PENDING;
        has_new_command_ = true;
    }
    const std::unique_lock lock(action_, std::try_to_lock);
    if (!lock.owns_lock() || !may_execute_at_once()) return notify_();
    begin_command();
    run_script();
    if (is_executing_) notify_();  // a step is late
}

/// A VF that has used up its quantum is parked already. So the thread that calls command() can
/// execute the next command, and the next VF does not wait until the device thread wakes up.
bool WorldSwitch::may_execute_at_once() {
    process_quantum_ends();
    const std::uint32_t command = view().command & GPUIOV_CMD_MASK;
    const bool is_copy = command == GPUIOV_CMD_INIT || kCommands[command].event == E::Clear;
    return (state_ == S::Loaded || state_ == S::Empty) && !is_executing_ && !is_copy &&
           port_.is_switch_short();
}

WorldSwitch::View WorldSwitch::view() const {
    const std::scoped_lock lock(mutex_);
    return view_;
}

void WorldSwitch::quantum_expired(const cp::RunReport& run) {
    {
        const std::scoped_lock lock(mutex_);
        quantum_ends_.push_back(run);
    }
    const std::unique_lock lock(action_, std::try_to_lock);
    if (!lock.owns_lock()) return notify_();
    process_quantum_ends();
}

std::optional<Nanoseconds> WorldSwitch::next_due() const {
    const std::scoped_lock lock(mutex_);
    return seen_due_;
}

/// Handles quantum ends first: if the PF answers a quantum end with RUN, the RUN must find the VF
/// in the state Loaded.
void WorldSwitch::process() {
    const std::scoped_lock lock(action_);
    process_quantum_ends();
    if (!is_executing_) begin_command();
    if (is_executing_) run_script();
}

/// Only the end of the current time slice steps the machine. The report of an older time slice
/// comes late and changes nothing.
void WorldSwitch::process_quantum_ends() {
    std::deque<cp::RunReport> ends;
    {
        const std::scoped_lock lock(mutex_);
        ends.swap(quantum_ends_);
    }
    for (const cp::RunReport& run : ends) {
        const bool is_current = open_run_ == run.time_slice;
        const bool was_running = state_ == S::Running;
        record_run(run, VGPU_RUN_END_QUANTUM);
        if (!is_current) continue;
        step(E::QuantumEnd);
        if (was_running) port_.interrupt(GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    }
}

void WorldSwitch::begin_command() {
    std::uint32_t dword = 0;
    {
        const std::scoped_lock lock(mutex_);
        if (!has_new_command_) return;
        has_new_command_ = false;
        dword = view_.command;
    }
    script_.clear();
    position_ = 0;
    is_executing_ = true;
    is_step_open_ = false;
    const CommandRow& row = kCommands[dword & GPUIOV_CMD_MASK];
    const VfId function = function_of(byte_of(dword, 1));
    if (!row.is_known) return finish(GPUIOV_STATUS_UNSUPPORTED);
    if (!row.is_switch) return script_.push_back({row.event, function});
    // If the PF is the outgoing function, there is no VF to save. If the PF is the next function,
    // there is no VF to load.
    if (function != kPf) script_ = {{E::Idle, function}, {E::Save, function}};
    const VfId next = function_of(byte_of(dword, 2));
    if (next != kPf) script_.insert(script_.end(), {{E::Load, next}, {E::Run, next}});
}

/// Executes steps until the command ends or a step is late or lost. When a late step is due,
/// process() calls run_script() again.
void WorldSwitch::run_script() {
    while (is_executing_ && position_ < script_.size()) {
        if (!is_step_open_ && !begin_step()) return;
        if (is_lost_ || (due_ && clock_.now() < *due_)) return;
        end_step();
        ++position_;
    }
    if (is_executing_) finish(GPUIOV_STATUS_DONE);
}

bool WorldSwitch::names_right_vf(const Step& step) const {
    if (step.function == kPf || raw(step.function) > total_vfs_) return false;
    const bool is_for_any =
        step.event == E::Load || step.event == E::Init || step.event == E::Clear;
    return is_for_any || step.function == function_;
}

/// True if end_step() may end the step: at once, or at the time due_ if the step is late. False if
/// the step was refused, was lost or went wrong. A step that was refused or went wrong has ended
/// the command.
bool WorldSwitch::begin_step() {
    const auto [event, function] = current();
    if (!names_right_vf(current()) || cell(state_, event).is_refused) {
        log::warn("VF{}: world switch: {} refused in {} of VF{}", raw(function), name(event),
                  name(state_), raw(function_));
        finish(GPUIOV_STATUS_ABORTED);
        return false;
    }
    is_step_open_ = true;
    step(event);
    // IDLE of a VF that parked itself at the end of its quantum is a step, too, and a planned fault
    // of IDLE applies to it, although the state Loaded does not change.
    if (!is_transient(state_) && event != E::Idle) return true;

    std::optional<PlannedFault> fault = faults_.take(function, kFaultPoints[at(event)]);
    if (!fault && event == E::Idle && port_.is_stuck(function)) fault.emplace();
    if (!fault) return true;
    if (fault->effect == FaultEffect::Late) {
        due_ = clock_.now() + fault->delay;
        publish();
        return true;
    }
    step(E::Lost);
    is_lost_ = true;
    if (fault->effect == FaultEffect::Wrong) finish(GPUIOV_STATUS_ABORTED);
    return false;
}

/// The event Done does the work of a transient state, in the action of its cell.
void WorldSwitch::end_step() {
    is_step_open_ = false;
    due_.reset();
    if (is_transient(state_)) step(E::Done);
}

void WorldSwitch::finish(gpuiov_status status) {
    is_executing_ = false;
    is_step_open_ = false;
    is_lost_ = false;
    due_.reset();
    {
        const std::scoped_lock lock(mutex_);
        view_.status = static_cast<std::uint8_t>(status);
        view_.command &= ~std::uint32_t{GPUIOV_CMD_EXECUTE};
        seen_due_.reset();
    }
    port_.interrupt(GPUIOV_INTR_GFX_CMD_COMPLETE);
}

// --- resets --------------------------------------------------------------------------------------

/// Resets the blocks under the action lock, so that no command can load the VF after it has left
/// the engine and before its reset.
void WorldSwitch::reset(VfId vf, const std::function<void()>& reset_blocks) {
    const std::scoped_lock lock(action_);
    process_quantum_ends();
    if (vf == function_) step(E::Reset);
    reset_blocks();
}

bool WorldSwitch::with_parked(VfId vf, const std::function<void()>& work) {
    const std::scoped_lock lock(action_);
    if (vf == function_ && state_ != S::Loaded) return false;
    work();
    return true;
}

}  // namespace vgpu::softgpu::iov
