// SPDX-License-Identifier: MIT
//
// A WorldSwitch over a fake engine: every call the machine makes is written down, time slices end
// when the test says so, time is virtual.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "pf-driver/softgpu/iov/world_switch.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::softgpu::iov {

class FakeEngine final : public SwitchPort {
public:
    explicit FakeEngine(const Clock& clock) : clock_(clock) {}

    std::optional<cp::RunReport> park() override {
        if (on_park) on_park();
        if (!is_running) return std::nullopt;
        calls.push_back(fmt::format("park {}", raw(vf)));
        return end_run();
    }
    std::uint64_t run(VfId id) override {
        calls.push_back(fmt::format("run {}", raw(id)));
        vf = id;
        is_running = true;
        started = clock_.now();
        return ++runs;
    }
    void save(VfId id) override { calls.push_back(fmt::format("save {}", raw(id))); }
    void load(VfId id) override { calls.push_back(fmt::format("load {}", raw(id))); }
    void clear(VfId id) override { calls.push_back(fmt::format("clear {}", raw(id))); }
    bool has_work(VfId) override { return is_busy; }
    bool is_stuck(VfId id) override { return id == stuck; }
    [[nodiscard]] bool is_switch_short() const override { return is_short; }
    void interrupt(std::uint32_t bits) override { interrupts |= bits; }
    void record(const vgpu_hw_run_log_entry& entry) override { log.push_back(entry); }

    /// The quantum ends: the engine has parked itself and says so.
    cp::RunReport end_run() {
        is_running = false;
        return {.time_slice = runs,
                .vf = vf,
                .start = started,
                .end = clock_.now(),
                .park = Nanoseconds{5},
                .idle = {},
                .instructions = 100};
    }
    std::vector<std::string> take_calls() { return std::exchange(calls, {}); }

    std::function<void()> on_park;
    std::vector<std::string> calls;
    std::vector<vgpu_hw_run_log_entry> log;
    std::uint32_t interrupts = 0;
    VfId vf = kPf;
    VfId stuck = kPf;
    bool is_running = false;
    bool is_busy = true;
    bool is_short = false;
    std::uint64_t runs = 0;
    Nanoseconds started{};

private:
    const Clock& clock_;
};

/// Byte of the command dword that names a VF.
constexpr std::uint32_t fcn(unsigned vf) {
    return GPUIOV_FCN_VF | (vf - 1);
}

struct SwitchRig {
    VirtualClock clock;
    FakeEngine engine{clock};
    FaultPlan faults;
    int wakes = 0;
    WorldSwitch machine{4, engine, faults, clock, [this] { ++wakes; }};

    /// Writes a command and lets the device thread work; the status afterwards.
    std::uint32_t command(gpuiov_command code, unsigned vf, unsigned next = 0) {
        machine.command(GPUIOV_COMMAND(code, vf == 0 ? 0 : fcn(vf), next == 0 ? 0 : fcn(next)));
        machine.process();
        return machine.view().status;
    }
    bool is_executing() const { return (machine.view().command & GPUIOV_CMD_EXECUTE) != 0; }
    void run_vf(unsigned vf) { (void)command(GPUIOV_CMD_CONTEXT_SWITCH, 0, vf); }
};

}  // namespace vgpu::softgpu::iov
