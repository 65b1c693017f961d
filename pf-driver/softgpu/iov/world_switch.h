// SPDX-License-Identifier: MIT
//
// WorldSwitch: the GFX scheduler of the GPU-IOV capability. The PF writes commands (IDLE SAVE LOAD
// RUN, or all four in one with CONTEXT_SWITCH). This machine checks their order, drives the engine
// and the VF's blocks through SwitchPort, reports status, and records each time slice of a VF on
// the engine (run log, service time). Diagram and table are in world_switch.cpp.
//
// A command that is out of order or names the wrong function ends with status ABORTED; its earlier
// steps stay done. A command that a planned fault loses does not end until its function, which is
// stalled, is reset.
//
// Any thread may call command(), view(), quantum_expired(), state() and next_due(). These never
// wait for a park: command() and quantum_expired() act at once if they can, and otherwise leave the
// work to process() on the device thread. A caller of reset() or with_parked() may have to wait for
// a park. The action lock is held while the machine acts, and during reset() and with_parked(). A
// thread takes the action lock before a VF lock.
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
#include "pf-driver/softgpu/cp/time_slice.h"
#include "pf-driver/softgpu/iov/fault_plan.h"

namespace vgpu::softgpu::iov {

/// The device as the machine drives it; implemented by the composition root, faked in tests. Called
/// with the action lock held.
class SwitchPort {
public:
    virtual ~SwitchPort() = default;
    /// Takes the VF off the engine and returns when the VF is off. This takes as long as the waves
    /// need to reach a stop point. The result is nullopt if no VF is on the engine, or if the VF
    /// parked itself at the end of its quantum; then quantum_expired() has reported the time slice.
    virtual std::optional<cp::RunReport> park() = 0;
    /// Puts the VF on the engine for its quantum; returns the number of the new time slice. Numbers
    /// count up and are never reused.
    virtual std::uint64_t run(VfId vf) = 0;
    /// Saves a parked VF; its blocks may be unusable until load().
    virtual void save(VfId vf) = 0;
    /// Loads the saved state of the VF. On return the VF's blocks are in place.
    virtual void load(VfId vf) = 0;
    /// Resets the device state of a parked VF, as an FLR does.
    virtual void clear(VfId vf) = 0;
    [[nodiscard]] virtual bool has_work(VfId vf) = 0;
    /// True if a planned fault keeps an engine of the VF from idling.
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

/// Load to Clear are commands of the PF; the other events come from the device.
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
        std::uint32_t command = 0;  ///< dword at +4; has EXECUTE until done
        std::uint8_t status = GPUIOV_STATUS_DONE;
        std::optional<VfId> function;  ///< the VF in the engine
        gpuiov_function_state state = GPUIOV_FUNCTION_IDLE;
    };
    /// The effect of an event in a state. A cell with `is_refused` answers ABORTED and keeps the
    /// state.
    struct Cell {
        SwitchState to = SwitchState::Mismatch;
        void (WorldSwitch::*action)() = nullptr;
        bool is_refused = false;
    };

    /// `notify` wakes the device thread.
    WorldSwitch(std::uint32_t total_vfs, SwitchPort& port, FaultPlan& faults, const Clock& clock,
                std::function<void()> notify);
    WorldSwitch(const WorldSwitch&) = delete;
    WorldSwitch& operator=(const WorldSwitch&) = delete;

    /// The PF wrote the command dword (GPUIOV_SCH_CMD_CONTROL): command and EXECUTE in byte 0,
    /// function in byte 1, next function in byte 2. Without EXECUTE the dword is only stored. With
    /// EXECUTE, the command is executing on return or has already ended. A write while a command
    /// executes is ignored, as on hardware.
    void command(std::uint32_t dword);
    /// A consistent view; status DONE means that everything that the command asked for is in force.
    [[nodiscard]] View view() const;
    /// The engine reports that the running VF has used up its quantum and is parked. Called once
    /// per time slice that ended by itself, before or after a command parks the same VF.
    void quantum_expired(const cp::RunReport& run);

    /// Executes everything that is due. Device thread.
    void process();
    /// The time by which process() must be called again, because a step is late; on the device's
    /// clock. nullopt if no step waits for time.
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

    /// If `vf` is in the engine, takes the VF out, from any state; a command that executes then
    /// ends ABORTED. After that, runs `reset_blocks`. No command can touch the VF until
    /// `reset_blocks` has returned.
    void reset(VfId vf, const std::function<void()>& reset_blocks);
    /// Runs `work` under the action lock, so that no command acts meanwhile. If `vf` is in the
    /// engine and the state is not Loaded, returns false and does not run `work`.
    [[nodiscard]] bool with_parked(VfId vf, const std::function<void()>& work);

    /// Every pair of state and event has a cell. Where the event is impossible, the cell leads to
    /// Mismatch.
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
    /// thread of a client may execute it.
    [[nodiscard]] bool may_execute_at_once();
    /// Action lock held. Records the time slices that quantum_expired() has reported, unless a
    /// command has recorded them already.
    void process_quantum_ends();
    void begin_command();
    void run_script();
    [[nodiscard]] const Step& current() const { return script_[position_]; }
    /// True if the step names a VF of the device. A step other than LOAD, INIT and CLEAR must name
    /// the VF in the engine.
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

    std::mutex action_;  // held while the machine acts; guards the members down to switching_
    SwitchState state_ = SwitchState::Empty;
    VfId function_ = kPf;       // the function in the engine; kPf: none
    std::vector<Step> script_;  // steps of the command that executes; reused
    std::size_t position_ = 0;  // index of the current step
    bool is_executing_ = false;
    bool is_lost_ = false;       // true if the current step is lost: only a reset ends the command
    bool is_step_open_ = false;  // true if the current step has begun and not ended
    std::optional<Nanoseconds> due_;         // time at which the current step, which is late, ends
    std::optional<std::uint64_t> open_run_;  // the time slice that is not recorded yet
    Nanoseconds switching_{};                // time in SAVE, LOAD, RUN since the last record

    mutable std::mutex mutex_;  // leaf; guards the state that other threads see
    View view_;
    SwitchState seen_state_ = SwitchState::Empty;
    std::optional<Nanoseconds> seen_due_;
    bool has_new_command_ = false;  // true if the command in view_ has not begun
    std::deque<cp::RunReport> quantum_ends_;
};

}  // namespace vgpu::softgpu::iov
