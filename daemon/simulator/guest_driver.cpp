// SPDX-License-Identifier: MIT
#include "daemon/simulator/guest_driver.h"

#include "pf-driver/hw/mailbox.h"

namespace vgpu::simulator {

void GuestDriver::load() {
    state_ = State::Asking;
    pf_->gpu.guest_sends(vf_, MAILBOX_REQ_GPU_INIT_ACCESS);
}

void GuestDriver::on_reset(bool stays_out) {
    if (state_ != State::Gone) state_ = stays_out ? State::Gone : State::Resetting;
}

void GuestDriver::step() {
    while (advance()) continue;
}

bool GuestDriver::advance() {
    switch (state_) {
        case State::Asking:
            return release_access();
        case State::Releasing:
            return finish_load();
        case State::Resetting:
            return answer_reset();
        default:
            return false;
    }
}

bool GuestDriver::release_access() {
    if (!pf_->gpu.vf(vf_).to_vf_valid) return false;
    pf_->gpu.guest_acknowledges(vf_);
    pf_->gpu.guest_sends(vf_, MAILBOX_REL_GPU_INIT_ACCESS);
    state_ = State::Releasing;
    return true;
}

bool GuestDriver::finish_load() {
    const std::uint32_t state = core_state();
    if (state == VGPU_PF_VF_READY || state == VGPU_PF_VF_RUNNING) state_ = State::Loaded;
    return false;
}

bool GuestDriver::answer_reset() {
    const ModelGpu::Vf& box = pf_->gpu.vf(vf_);
    if (box.to_vf_valid) {
        const bool is_notice = box.to_vf[0] == MAILBOX_VF_FLR_NOTIFICATION;
        pf_->gpu.guest_acknowledges(vf_);
        if (is_notice) pf_->gpu.guest_sends(vf_, MAILBOX_READY_TO_RESET);
        return true;
    }
    if (core_state() != VGPU_PF_VF_PROVISIONED) return false;
    load();
    return true;
}

}  // namespace vgpu::simulator
