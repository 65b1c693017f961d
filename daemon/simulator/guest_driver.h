// SPDX-License-Identifier: MIT
//
// GuestDriver: the part of a guest's driver that the PF core sees. To load, the driver requests
// full access, and releases full access as soon as the PF core grants it. After on_reset(false),
// the driver answers the FLR notification with READY_TO_RESET, and loads again when the VF is
// PROVISIONED. After on_reset(true), the driver does nothing more. on_reset() is possible in
// every state.
//
//   Absent --load--> Asking --access--> Releasing --READY--> Loaded
//                      ^                                       | on_reset
//                      +---------- VF is PROVISIONED -------- Resetting   (Gone, if stays_out)
//
// A ProductRun (product.cpp) calls step() between events of the device.
#pragma once

#include "daemon/simulator/virtual_pf.h"

#include <cstdint>

namespace vgpu::simulator {

class GuestDriver {
public:
    /// `pf` must outlive the GuestDriver.
    GuestDriver(VirtualPf& pf, std::uint32_t vf) : pf_(&pf), vf_(vf) {}

    /// Starts to load the driver; step() continues.
    void load();
    /// Informs the driver that its VF was reset. `stays_out`: the driver does not load again.
    void on_reset(bool stays_out);
    /// Makes all state transitions that are possible at the present time.
    void step();

    [[nodiscard]] bool is_loaded() const { return state_ == State::Loaded; }

private:
    enum class State : std::uint8_t { Absent, Asking, Releasing, Loaded, Resetting, Gone };

    /// Each of these functions does what its state requires, if that is possible now. True if the
    /// driver may be able to do more.
    [[nodiscard]] bool advance();
    [[nodiscard]] bool release_access();
    [[nodiscard]] bool finish_load();
    [[nodiscard]] bool answer_reset();
    /// The VF's state in the PF core (VGPU_PF_VF_READY, ...).
    [[nodiscard]] std::uint32_t core_state() const { return pf_->vf(vf_).state; }

    VirtualPf* pf_;
    std::uint32_t vf_;
    State state_ = State::Absent;
};

}  // namespace vgpu::simulator
