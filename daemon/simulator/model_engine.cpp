// SPDX-License-Identifier: MIT
//
// ModelGpu's engine: commands, runs and their ends, resets, and the actions of guests and clients.
#include "daemon/simulator/model_gpu.h"

#include <algorithm>

#include "pf-driver/hw/regs.h"

namespace vgpu::simulator {

namespace {

/// The VF that a function id of GPU-IOV (GPUIOV_FCN_VF, gpuiov.h) names; 0 is the PF.
std::uint32_t function_vf(std::uint32_t byte) {
    return (byte & GPUIOV_FCN_VF) != 0 ? (byte & 0x7fu) + 1 : 0;
}

}  // namespace

// --- commands and runs

/// `dword`: as GPUIOV_COMMAND() makes it.
void ModelGpu::start_command(std::uint32_t dword) {
    command_ = dword;
    status_ = GPUIOV_STATUS_PENDING;
    steps_.clear();
    step_ = 0;
    ++command_id_;
    const auto command = static_cast<gpuiov_command>(dword & GPUIOV_CMD_MASK);
    const std::uint32_t from = function_vf(dword >> 8 & 0xff);
    const std::uint32_t to = function_vf(dword >> 16 & 0xff);
    if (command == GPUIOV_CMD_CONTEXT_SWITCH) {
        if (from != 0) steps_ = {{GPUIOV_CMD_IDLE, from}, {GPUIOV_CMD_SAVE, from}};
        if (to != 0) {
            steps_.emplace_back(GPUIOV_CMD_LOAD, to);
            steps_.emplace_back(GPUIOV_CMD_RUN, to);
        }
    } else {
        steps_ = {{command, from}};
    }
    next_step();
}

/// Ends the command after its last step. Otherwise schedules the end of the next step, unless the
/// VF hangs, or a planned fault (FaultKind) makes the step fail.
void ModelGpu::next_step() {
    if (step_ == steps_.size()) return end_command(GPUIOV_STATUS_DONE);
    const gpuiov_command step = steps_[step_].first;
    const std::uint32_t vf = steps_[step_].second;
    static const std::map<gpuiov_command, gpuiov_status> kStatusDuring = {
        {GPUIOV_CMD_IDLE, GPUIOV_STATUS_IDLING},
        {GPUIOV_CMD_SAVE, GPUIOV_STATUS_SAVING},
        {GPUIOV_CMD_LOAD, GPUIOV_STATUS_LOADING},
        {GPUIOV_CMD_RUN, GPUIOV_STATUS_ENABLING}};
    status_ = kStatusDuring.contains(step) ? kStatusDuring.at(step) : GPUIOV_STATUS_PENDING;
    if (step == GPUIOV_CMD_IDLE && vfs_[vf].hangs && is_running_) {
        is_stalled_ = true;
        return;
    }
    std::uint64_t duration = step_ns;
    const bool is_delayed =
        overruns_hold && step == GPUIOV_CMD_IDLE && is_running_ && now_ >= quantum_end_;
    if (is_delayed) duration = std::max(duration, run_end_ - now_);
    const auto fault =
        std::ranges::find_if(faults, [&](const Fault& f) { return f.step == step && f.vf == vf; });
    if (fault != faults.end()) {
        const Fault planned = *fault;
        faults.erase(fault);
        if (planned.kind == FaultKind::Late) duration += planned.late_ns;
        if (planned.kind != FaultKind::Late) {
            if (step == GPUIOV_CMD_LOAD) loaded_ = vf;
            is_stalled_ = loaded_ != 0;
        }
        if (planned.kind == FaultKind::Lost) return;
        if (planned.kind == FaultKind::Aborted) return end_command(GPUIOV_STATUS_ABORTED);
    }
    const std::uint64_t id = command_id_;
    at(now_ + duration, [this, id, step, vf] {
        if (id != command_id_) return;
        if (!apply_step(step, vf)) return end_command(GPUIOV_STATUS_ABORTED);
        ++step_;
        next_step();
    });
}

/// Carries out a step at its end. False if the engine is not in the state that the step requires,
/// or if the model does not know the step.
bool ModelGpu::apply_step(gpuiov_command step, std::uint32_t vf) {
    const bool is_in_engine = vf != 0 && loaded_ == vf && !is_stalled_;
    switch (step) {
        case GPUIOV_CMD_IDLE:
            if (!is_in_engine) return false;
            if (is_running_) park(VGPU_RUN_END_COMMAND, now_);
            return true;
        case GPUIOV_CMD_SAVE:
            if (!is_in_engine || is_running_) return false;
            loaded_ = 0;
            return true;
        case GPUIOV_CMD_LOAD:
            if (loaded_ != 0 || vf == 0) return false;
            loaded_ = vf;
            ++switches_;
            return true;
        case GPUIOV_CMD_RUN:
            if (!is_in_engine) return false;
            if (is_running_) park(VGPU_RUN_END_COMMAND, now_);
            start_run(vf);
            return true;
        default:
            return false;
    }
}

void ModelGpu::end_command(gpuiov_status status) {
    status_ = status;
    command_ &= ~std::uint32_t{GPUIOV_CMD_EXECUTE};
    ++command_id_;
    interrupt(GPUIOV_INTR_GFX_CMD_COMPLETE);
}

void ModelGpu::start_run(std::uint32_t vf) {
    is_running_ = true;
    run_start_ = now_;
    const std::uint64_t id = ++run_id_;
    const std::uint64_t quantum = bank(vf, REG_VGPU_VF0_QUANTUM_US) * kUs;
    const bool has_end = quantum != 0 && !vfs_[vf].hangs;
    const std::uint64_t late = has_end && overrun ? overrun(vf) : 0;
    quantum_end_ = quantum == 0 ? kEndless : now_ + quantum;
    run_end_ = has_end ? quantum_end_ + late : kEndless;
    work_from_ = now_;
    idle_ns_ = 0;
    idle_since_.reset();
    if (on_start) on_start(vf);
    if (vfs_[vf].work_ns == 0) idle_since_ = now_;
    watch_work();
    if (!has_end) return;
    at(run_end_, [this, id] {
        if (id != run_id_ || !is_running_) return;
        park(VGPU_RUN_END_QUANTUM, now_);
        interrupt(GPUIOV_INTR_GFX_QUANTUM_EXPIRED);
    });
}

/// Schedules the end of the running VF's work if the work ends within the run.
void ModelGpu::watch_work() {
    const std::uint64_t work = vfs_[loaded_].work_ns;
    if (vfs_[loaded_].hangs) return;
    if (work == 0 || work == kEndless || work_from_ + work >= run_end_) return;
    const std::uint64_t id = run_id_;
    at(work_from_ + work, [this, id, work] {
        if (id != run_id_ || !is_running_ || vfs_[loaded_].work_ns != work) return;
        vfs_[loaded_].work_ns = 0;
        work_from_ = now_;
        idle_since_ = now_;
        interrupt(GPUIOV_INTR_GFX_VM_IDLE);
    });
}

void ModelGpu::end_idle() {
    if (idle_since_) idle_ns_ += now_ - *idle_since_;
    idle_since_.reset();
}

/// Ends the run of the loaded VF at `time`, and logs the run.
void ModelGpu::park(vgpu_hw_run_end reason, std::uint64_t time) {
    is_running_ = false;
    ++run_id_;
    intr_status_ &= ~std::uint32_t{GPUIOV_INTR_GFX_VM_IDLE};
    Vf& vf = vfs_[loaded_];
    const std::uint64_t ran = time - run_start_;
    if (vf.work_ns != kEndless) vf.work_ns -= std::min(vf.work_ns, time - work_from_);
    vgpu_hw_run_log_entry entry{};
    entry.run_start_ns = run_start_;
    entry.run_end_ns = time;
    entry.vf = loaded_;
    entry.reason = reason;
    entry.wave_instructions = ran / 10;  // the model executes no code; it reports one per 10 ns
    end_idle();
    entry.idle_ns = std::min(idle_ns_, ran);
    append_log(entry);
    if (on_run) on_run(entry);
}

void ModelGpu::append_log(const vgpu_hw_run_log_entry& entry) {
    const std::uint64_t entries = regs_[REG_VGPU_LOG_SIZE];
    const auto block = dma_.find(pair(REG_VGPU_LOG_BASE_LO));
    if (entries == 0 || block == dma_.end()) return;
    if (lose_log_entries != 0) {
        --lose_log_entries;
        ++log_written_;
        return;
    }
    auto* ring = static_cast<vgpu_hw_run_log_entry*>(static_cast<void*>(block->second->data()));
    ring[log_written_ % entries] = entry;
    ring[log_written_ % entries].seq = log_written_ + 1;
    ++log_written_;
}

void ModelGpu::reset_vf(std::uint32_t number) {
    set_bank(number, REG_VGPU_VF0_RESET, 0);
    set_bank(number, REG_VGPU_VF0_GATES, 0);
    ++vfs_[number].generation;
    vfs_[number].work_ns = 0;
    vfs_[number].has_interrupts = false;
    if (loaded_ == number) unload_active();
    vfs_[number].hangs = false;
    if (on_reset) on_reset(number);
}

void ModelGpu::unload_active() {
    if (is_running_) park(VGPU_RUN_END_RESET, now_);
    loaded_ = 0;
    is_stalled_ = false;
    if ((command_ & GPUIOV_CMD_EXECUTE) != 0) end_command(GPUIOV_STATUS_ABORTED);
}

void ModelGpu::power_cycle() {
    regs_.clear();
    vram_.clear();
    events_.clear();
    intr_status_ = intr_enable_ = mbox1_ = 0;
    command_ = status_ = 0;
    op_busy_ = op_refused_ = false;
    loaded_ = 0;
    is_running_ = is_stalled_ = false;
    log_written_ = 0;
    irq_ = false;
    ++run_id_;
    ++command_id_;
    for (Vf& vf : vfs_) {
        vf.to_pf_lost = vf.to_pf_valid && !vf.to_pf_acked;
        vf.to_pf_valid = false;
        vf.work_ns = 0;
        vf.hangs = false;
        vf.flr_never_ends = false;
        vf.has_interrupts = false;
    }
}

void ModelGpu::device_reset() {
    const auto registers = regs_;
    const auto vram = vram_;
    power_cycle();
    if (!device_reset_keeps_vram) return;
    vram_ = vram;
    for (std::uint32_t vf = 1; vf < vfs_.size(); ++vf)
        for (const std::uint32_t reg : {REG_VGPU_VF0_FB_TABLE_ROOT_LO,
                                        REG_VGPU_VF0_FB_TABLE_ROOT_HI, REG_VGPU_VF0_FB_SIZE_MB})
            if (const auto found = registers.find(reg + vf * HW_VGPU_BANK_STRIDE);
                found != registers.end())
                regs_.insert(*found);
}

void ModelGpu::give_work(std::uint32_t number, std::uint64_t ns) {
    Vf& vf = vfs_[number];
    const bool is_active = loaded_ == number && is_running_;
    if (is_active && vf.work_ns == 0) work_from_ = now_;
    if (is_active) end_idle();
    vf.work_ns = ns == kEndless || vf.work_ns == kEndless ? kEndless : vf.work_ns + ns;
    if (is_active) watch_work();
    if (!is_active && (regs_[REG_VGPU_WAKE_ENABLE] >> (number - 1) & 1u) != 0)
        interrupt(GPUIOV_INTR_GFX_VM_BUSY);
    deliver();
}

void ModelGpu::hang(std::uint32_t number) {
    vfs_[number].hangs = true;
    if (loaded_ != number || !is_running_) return;
    ++run_id_;  // cancels the scheduled ends of the VF's quantum and work
    run_end_ = kEndless;
}

// --- guests

void ModelGpu::guest_sends(std::uint32_t number, std::uint32_t event, std::uint32_t dw1,
                           std::uint32_t dw2, std::uint32_t dw3) {
    Vf& vf = vfs_[number];
    const std::uint32_t message[4] = {event, dw1, dw2, dw3};
    // a driver turns its interrupt ring on before it releases full access
    if (event == MAILBOX_REL_GPU_INIT_ACCESS) vf.has_interrupts = true;
    std::ranges::copy(message, vf.to_pf);
    vf.to_pf_valid = true;
    vf.to_pf_acked = vf.to_pf_lost = false;
    mbox1_ |= 1u << (2 * (number - 1));  // bit VALID of the VF
    interrupt(GPUIOV_INTR_HVVM_MBOX_VALID);
    deliver();
}

void ModelGpu::guest_acknowledges(std::uint32_t number) {
    acknowledge(number);
    deliver();
}

/// Acknowledges the PF's message, without a call of the core.
void ModelGpu::acknowledge(std::uint32_t number) {
    vfs_[number].to_vf_valid = false;
    vfs_[number].to_vf[0] = 0;
    mbox1_ |= 2u << (2 * (number - 1));  // bit ACK of the VF
    interrupt(GPUIOV_INTR_HVVM_MBOX_ACK);
}

void ModelGpu::guest_resets_function(std::uint32_t number) {
    reset_vf(number);
    vfs_[number].flr_pending = true;
    interrupt(GPUIOV_INTR_VF_FLR);
    deliver();
}

void ModelGpu::attach_client(std::uint32_t number, bool is_attached) {
    if (vfs_[number].is_attached && !is_attached) {
        reset_vf(number);
        vfs_[number].flr_pending = true;
    }
    vfs_[number].is_attached = is_attached;
    interrupt(GPUIOV_INTR_VF_FLR);  // reports attachments, too
    deliver();
}

}  // namespace vgpu::simulator
