// SPDX-License-Identifier: MIT
//
// WorldSwitch: the GFX scheduler of the GPU-IOV capability. The PF writes commands (such as IDLE
// SAVE LOAD RUN, or all four in one with CONTEXT_SWITCH). WorldSwitch is a state machine: it checks
// the order of the commands, drives the engine and the VF's blocks through SwitchPort, reports
// status, and records each time slice of a VF on the engine (run log, service time). Diagram and
// table are in world_switch.cpp.
//
// A command that is out of order or names the wrong function ends with status ABORTED; its earlier
// steps stay done. If a planned fault (FaultPlan) loses a step, the function is stalled, and the
// command ends only when the function is reset.
//
// Any thread may call command(), view(), quantum_expired(), state() and next_due(). These functions
// never wait for a park: command() and quantum_expired() act at once if they can, and otherwise
// leave the work to process() on the device thread (gpu.h). A caller of reset() or with_parked()
// may have to wait for a park. The action lock is held while the machine acts, and during reset()
// and with_parked(). Lock order: first the action lock, then a VF lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/cp/time_slice.h"
#include "pf-driver/softgpu/iov/fault_plan.h"

namespace vgpu::softgpu::iov {

/// The device as the state machine drives it. Gpu implements this interface, and tests have a fake.
/// Called with the action lock held.
class SwitchPort {
public:
    virtual ~SwitchPort() = default;
    /// Takes the VF off the engine; returns when its waves and packets have stopped. nullopt if no
    /// VF is on the engine, or if the VF has parked itself at the end of its quantum; in the latter
    /// case quantum_expired() has reported the time slice.
    virtual std::optional<cp::RunReport> park() = 0;
    /// Puts the VF on the engine for its quantum; returns the number of the new time slice. Numbers
    /// count up from 1 and are never reused; 0: the engine refused the VF.
    virtual std::uint64_t run(VfId vf) = 0;
    /// Saves a parked VF; its blocks may be unusable until load().
    virtual void save(VfId vf) = 0;
    /// Loads the saved state of the VF. On return the VF's blocks are in place.
    virtual void load(VfId vf) = 0;
    /// Resets the device state of a VF that does not run, as an FLR does.
    virtual void clear(VfId vf) = 0;
    /// True if the VF has work for the engine.
    [[nodiscard]] virtual bool has_work(VfId vf) = 0;
    /// True if a planned fault (FaultPoint::Sdma) keeps the VF from idling.
    [[nodiscard]] virtual bool is_stuck(VfId vf) = 0;
    /// True if save() and load() take no longer than a register access.
    [[nodiscard]] virtual bool is_switch_short() const = 0;
    /// Raises GPUIOV_INTR_* bits at the PF.
    virtual void interrupt(std::uint32_t bits) = 0;
    /// Records a time slice that is over.
    virtual void record(const vgpu_hw_run_log_entry& entry) = 0;
};

/// The states of the diagram in world_switch.cpp. The tables in that file have the same order.
enum class SwitchState : std::uint8_t {
    Empty,     ///< no function is in the engine
    Loading,   ///< the function's state is being loaded
    Loaded,    ///< in the engine, stopped
    Starting,  ///< about to run
    Running,
    Idling,   ///< the function's work is being stopped
    Saving,   ///< the function's state is being saved
    Stalled,  ///< a planned fault stopped a step; only a reset helps
    Mismatch  ///< an event came in a state where the event is impossible
};
inline constexpr std::size_t kSwitchStates = 9;

/// Load, Init, Run, Idle, Save and Clear are steps of the PF's commands. Done ends the work of a
/// state (Loading, Starting, Idling, Saving). Lost: a planned fault has stopped a step. QuantumEnd:
/// the engine has parked the VF. Reset comes from WorldSwitch::reset().
enum class SwitchEvent : std::uint8_t {
    Load,
    Init,
    Run,
    Idle,
    Save,
    Clear,
    Done,
    QuantumEnd,
    Lost,
    Reset
};
inline constexpr std::size_t kSwitchEvents = 10;

/// One per device, because softgpu has one GFX scheduler, which all VFs share.
class WorldSwitch {
public:
    /// The scheduler block as the PF reads it.
    struct View {
        std::uint32_t command = 0;  ///< CMD_CONTROL; has EXECUTE until the command has ended
        std::uint8_t status = GPUIOV_STATUS_DONE;  ///< enum gpuiov_status
        std::optional<VfId> function;              ///< the VF in the engine; nullopt: none
        gpuiov_function_state state = GPUIOV_FUNCTION_IDLE;
    };
    /// The effect of an event in a state: runs `action`, if any, then changes the state to `to`. If
    /// `is_refused`, the command ends ABORTED and the state stays.
    struct Cell {
        SwitchState to = SwitchState::Mismatch;
        void (WorldSwitch::*action)() = nullptr;
        bool is_refused = false;
    };

    /// VFs have the numbers 1 to `total_vfs`. `notify` wakes the device thread.
    WorldSwitch(std::uint32_t total_vfs, SwitchPort& port, FaultPlan& faults, const Clock& clock,
                std::function<void()> notify);
    WorldSwitch(const WorldSwitch&) = delete;
    WorldSwitch& operator=(const WorldSwitch&) = delete;

    /// The PF wrote the command dword (GPUIOV_SCH_CMD_CONTROL): command and EXECUTE in byte 0,
    /// function in byte 1, next function in byte 2. Without EXECUTE the dword is only stored. With
    /// EXECUTE, the command is pending, executing or ended on return. A write while EXECUTE of an
    /// earlier command is set is ignored, as on hardware.
    void command(std::uint32_t dword);
    /// A consistent copy. Without EXECUTE in `command`, status DONE means that all steps of the
    /// command are complete.
    [[nodiscard]] View view() const;
    /// Call when the engine has parked a VF at the end of its quantum: once per time slice that
    /// ended by itself. A command may be parking the same VF at that time.
    void quantum_expired(const cp::RunReport& run);

    /// Executes everything that is due: quantum ends, a new command, a late step. Device thread.
    void process();
    /// The time on the device's clock at which process() must be called again, because a late step
    /// ends then. nullopt if no step is late.
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

    /// If `vf` is in the engine, takes the VF out, from any state, and a command that is being
    /// executed ends ABORTED. In any case runs `reset_blocks` after that. No command can touch the
    /// VF until `reset_blocks` has returned.
    void reset(VfId vf, const std::function<void()>& reset_blocks);
    /// Runs `work` under the action lock, so that no command acts meanwhile. If `vf` is in the
    /// engine and the state is not Loaded, returns false and does not run `work`.
    [[nodiscard]] bool with_parked(VfId vf, const std::function<void()>& work);

    /// The cell of the table for a pair of state and event. If the event is impossible in the
    /// state, the cell leads to Mismatch.
    [[nodiscard]] static const Cell& cell(SwitchState state, SwitchEvent event);
    [[nodiscard]] static std::string_view name(SwitchState state);
    [[nodiscard]] static std::string_view name(SwitchEvent event);
    /// The state as last published; any thread.
    [[nodiscard]] SwitchState state() const;

private:
    struct Step {
        SwitchEvent event;
        VfId function;
    };
    /// Commands by their 4-bit number; see world_switch.cpp.
    struct CommandRow;
    static const std::array<CommandRow, 16> kCommands;

    // commands
    /// Action lock held. True if the new command needs neither a park nor a long copy, so that the
    /// thread that calls command() may execute it.
    [[nodiscard]] bool may_execute_at_once();
    /// Action lock held. Records the time slices that quantum_expired() has reported, unless a
    /// command has recorded them already.
    void process_quantum_ends();
    void begin_command();
    void run_script();
    [[nodiscard]] const Step& current() const { return script_[position_]; }
    /// True if the step names a VF of the device and, except in LOAD, INIT and CLEAR, this VF is in
    /// the engine.
    [[nodiscard]] bool names_right_vf(const Step& step) const;
    [[nodiscard]] bool begin_step();
    void end_step();
    /// Clears EXECUTE before it raises GFX_CMD_COMPLETE, because to the PF a command is complete
    /// when EXECUTE is clear and the status is 0 (libgv, amdgv_gpuiov.c).
    void finish(gpuiov_status status);

    // machine
    void step(SwitchEvent event);
    void exit_loading();
    void exit_starting();
    void exit_idling();
    void exit_saving();
    void clear_function();
    void enter_loading();
    /// The action of Reset: parks the VF and aborts the command that executes.
    void abort_for_reset();

    void park_and_record(vgpu_hw_run_end reason);
    void record_run(const cp::RunReport& run, vgpu_hw_run_end reason);
    /// Adds the time of `work` to switching_, which the next run log entry reports.
    template <typename Work> void measure_switching(Work work);
    [[nodiscard]] vgpu_hw_run_end idle_reason();
    /// Copies the state for other threads, so that view() never waits for a park.
    void publish();

    const std::uint32_t total_vfs_;
    SwitchPort& port_;
    FaultPlan& faults_;
    const Clock& clock_;
    std::function<void()> notify_;

    PiMutex action_;  // held while the machine acts; guards the members down to switching_
    SwitchState state_ = SwitchState::Empty;
    VfId function_ = kPf;       // the function in the engine; kPf: none
    std::vector<Step> script_;  // steps of the command that executes
    std::size_t position_ = 0;  // index of the current step
    bool is_executing_ = false;
    bool is_lost_ = false;       // true if the current step is lost; only a reset ends the command
    bool is_step_open_ = false;  // true if the current step has begun and not ended
    std::optional<Nanoseconds> due_;         // end of the current step; only if the step is late
    std::optional<std::uint64_t> open_run_;  // number of the time slice that is not recorded yet
    Nanoseconds switching_{};                // time in SAVE, LOAD, INIT, RUN since the last record

    mutable PiMutex mutex_;  // leaf; guards the state that other threads see
    View view_;
    SwitchState seen_state_ = SwitchState::Empty;
    std::optional<Nanoseconds> seen_due_;
    bool has_new_command_ = false;  // true if the command in view_ has not begun
    std::deque<cp::RunReport> quantum_ends_;
};

}  // namespace vgpu::softgpu::iov
