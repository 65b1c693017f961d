// SPDX-License-Identifier: MIT
//
// World switch: the GFX scheduler of the GPU-IOV capability. The PF writes commands (IDLE SAVE LOAD
// RUN, or all four in one with CONTEXT_SWITCH); this machine checks their order, drives the engine
// and the VF's blocks through SwitchPort, reports status, and writes down each stay of a VF on the
// engine (run log, service time). Diagram and table are in world_switch.cpp.
//
// A command with the wrong order or function ends with status ABORTED and changes nothing. A
// command that a planned fault makes vanish never ends: its function is stalled until it is reset.
//
// Threads: command(), view(), quantum_expired() from any thread, cheap. process() on the device
// thread executes what they left behind. reset() from any thread that may wait for a park. The
// action lock is held during process() and reset() and comes before every VF lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/iov/fault_plan.h"

namespace vgpu::softgpu::iov {

/// One stay of a VF on the engine, as the engine measured it.
/// Times are of the device's clock, the one of VGPU_TIME_NS.
struct RunSummary {
    std::uint64_t id = 0;  ///< what SwitchPort::run() returned for it
    VfId vf{};
    Nanoseconds start{};
    Nanoseconds end{};   ///< the last worker was out
    Nanoseconds park{};  ///< of which: from the stop request
    Nanoseconds idle{};  ///< of which: dry spells that the PF was told of
    std::uint64_t instructions = 0;
};

/// What the machine drives; implemented by the composition root, faked in tests. Called with the
/// action lock held.
class SwitchPort {
public:
    virtual ~SwitchPort() = default;
    /// Takes the VF off the engine and waits for it; nothing if none is on it.
    /// Nothing also if the VF parked itself at the end of its quantum: its summary has come by
    /// quantum_expired() then. Takes as long as the waves need to reach a stop point.
    virtual std::optional<RunSummary> park() = 0;
    /// Puts the VF on the engine for its quantum; returns the id of the stay that begins.
    /// Ids count up; none is used twice while the device lives.
    virtual std::uint64_t run(VfId vf) = 0;
    /// Of a parked VF: its blocks may be taken away until load().
    virtual void save(VfId vf) = 0;
    /// The VF's blocks are in place when this returns.
    virtual void load(VfId vf) = 0;
    /// Device state of a parked VF back to power-on.
    virtual void clear(VfId vf) = 0;
    [[nodiscard]] virtual bool has_work(VfId vf) = 0;
    /// A planned fault keeps one of its engines from idling.
    [[nodiscard]] virtual bool is_stuck(VfId vf) = 0;
    /// GPUIOV_INTR_* bits for the PF.
    virtual void interrupt(std::uint32_t bits) = 0;
    /// A stay is over.
    virtual void record(const vgpu_hw_run_log_entry& entry) = 0;
};

/// As the diagram in world_switch.cpp; order of the enum is that of its tables.
enum class SwitchState : std::uint8_t {
    Empty,     ///< no function is in the engine
    Loading,   ///< its state is being brought in
    Held,      ///< in the engine, stopped
    Starting,  ///< about to run
    Running,
    Idling,   ///< its work is being stopped
    Saving,   ///< its state is being taken out
    Stalled,  ///< a step never ended; only a reset helps
    Mismatch  ///< the machine met a cell that cannot be
};
inline constexpr std::size_t kSwitchStates = 9;

/// Load to Clear are commands of the PF; the others come from the device.
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

/// One per device: softgpu has one GFX scheduler, which all VFs share.
class WorldSwitch {
public:
    /// Constant after build.
    struct Spec {
        std::uint32_t total_vfs = GPUIOV_MAX_VFS;
    };
    /// The scheduler block as the PF reads it.
    struct View {
        std::uint32_t command = 0;  ///< dword at +4; EXECUTE until done
        std::uint8_t status = GPUIOV_STATUS_DONE;
        std::optional<VfId> function;  ///< in the engine
        gpuiov_function_state state = GPUIOV_FUNCTION_IDLE;
    };
    /// What an event does to a state; `is_refused` cells answer ABORTED and stay.
    struct Cell {
        SwitchState to = SwitchState::Mismatch;
        void (WorldSwitch::*action)() = nullptr;
        bool is_refused = false;
    };

    /// `notify` wakes the device thread.
    WorldSwitch(const Spec& spec, SwitchPort& port, FaultPlan& faults, const Clock& clock,
                std::function<void()> notify);
    WorldSwitch(const WorldSwitch&) = delete;
    WorldSwitch& operator=(const WorldSwitch&) = delete;

    /// The PF wrote the command dword: command, EXECUTE, function and next function in one byte
    /// each (GPUIOV_SCH_CMD_CONTROL). Without EXECUTE it is only stored; with it, status is PENDING
    /// when this returns. Ignored while one is executing, as on hardware.
    void command(std::uint32_t dword);
    /// Consistent in itself; a status of DONE means that everything the command asked for is in
    /// force.
    [[nodiscard]] View view() const;
    /// From the engine: the running VF has used up its quantum and is parked.
    /// Called once per stay that ended by itself, before or after a command parks the same VF.
    void quantum_expired(const RunSummary& run);

    /// Executes everything that is due. Device thread.
    void process();
    /// When process() must be called again at the latest, for a step that is late.
    /// On the device's clock; nothing if no step waits for time.
    [[nodiscard]] std::optional<Nanoseconds> next_due() const;

    /// Takes `vf` out of the engine if it is there, in whatever state, then runs `reset_blocks`
    /// before any other command can touch it.
    /// A command that is executing for `vf` ends ABORTED. A VF that is not in the engine is reset
    /// while no command can load it.
    void reset(VfId vf, const std::function<void()>& reset_blocks);
    /// Runs `work` while no command executes; false if `vf` is in the engine.
    /// Held counts as parked: in the engine, stopped.
    [[nodiscard]] bool with_parked(VfId vf, const std::function<void()>& work);

    /// Total: every pair of state and event has a cell; Mismatch where an event cannot be.
    [[nodiscard]] static const Cell& cell(SwitchState state, SwitchEvent event);
    [[nodiscard]] static std::string_view name(SwitchState state);
    [[nodiscard]] static std::string_view name(SwitchEvent event);
    /// As last published; any thread.
    [[nodiscard]] SwitchState state() const;

private:
    static constexpr std::size_t kMaxSteps = 4;
    /// A command being executed: its remaining steps.
    struct Script {
        std::array<SwitchEvent, kMaxSteps> steps{};
        std::array<VfId, kMaxSteps> functions{};
        std::size_t count = 0;
        std::size_t position = 0;
    };
    /// Commands by their 4-bit number; see world_switch.cpp.
    struct CommandRow;
    static const std::array<CommandRow, 16> kCommands;

    // commands
    /// Action lock held. Runs recorded here are those that no command has closed before.
    void take_quantum_ends();
    void begin_command();
    void run_script();
    [[nodiscard]] bool is_for_held(SwitchEvent event, VfId function) const;
    [[nodiscard]] bool begin_step(SwitchEvent event, VfId function);
    void end_step();
    /// EXECUTE goes and GFX_CMD_COMPLETE is raised, in this order: "complete" to the PF is EXECUTE
    /// clear and status 0 (libgv, amdgv_gpuiov.c).
    void finish(gpuiov_status status);
    void add_step(SwitchEvent event, VfId function);
    void script_switch(VfId from, VfId to);

    // machine
    void step(SwitchEvent event);
    void exit_loading();
    void exit_starting();
    void exit_idling();
    void exit_saving();
    void clear_function();
    void enter_loading();
    void enter_initialising();
    void drop();

    void end_run(vgpu_hw_run_end reason);
    void close_run(const RunSummary& run, vgpu_hw_run_end reason);
    /// Adds the time of `work` to switching_, which the next run log entry reports.
    template <typename Work> void timed(Work work);
    [[nodiscard]] vgpu_hw_run_end command_reason();
    /// Copies what other threads may see, so that view() never waits for a park.
    void publish();
    void set_status(gpuiov_status status);

    const Spec spec_;
    SwitchPort& port_;
    FaultPlan& faults_;
    const Clock& clock_;
    std::function<void()> notify_;

    std::mutex action_;  // held while the machine acts; guards the next block
    SwitchState state_ = SwitchState::Empty;
    VfId function_ = kPf;  // in the engine, kPf: none
    VfId target_ = kPf;    // of the step that is executing
    bool is_initialising_ = false;
    Script script_;
    bool is_executing_ = false;
    bool is_lost_ = false;
    bool is_step_open_ = false;  // begun, not ended: late
    std::optional<Nanoseconds> due_;
    std::optional<std::uint64_t> open_run_;  // the stay that is not recorded yet
    Nanoseconds switching_{};                // spent in SAVE, LOAD, RUN since the last park

    mutable std::mutex mutex_;  // leaf; guards what other threads see
    View view_;
    SwitchState seen_state_ = SwitchState::Empty;
    std::optional<Nanoseconds> seen_due_;
    bool has_new_command_ = false;
    std::deque<RunSummary> quantum_ends_;
};

}  // namespace vgpu::softgpu::iov
