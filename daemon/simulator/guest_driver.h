// SPDX-License-Identifier: MIT
//
// GuestDriver: the part of a guest's driver that the PF core sees. It loads in full access for as
// long as one message takes. After a reset it reports ready at once, and loads again when the VF is
// provisioned again. A guest that stays out sends nothing after its reset.
//
//   Absent --load--> Asking --access--> Releasing --READY--> Loaded
//                      ^                                        | was_reset
//                      +---------- VF is PROVISIONED -------- Resetting   (Gone, if it stays out)
//
// Called by a ProductRun between two events of the device.
#pragma once

#include "daemon/simulator/virtual_pf.h"

#include <cstdint>

namespace vgpu::simulator {

class GuestDriver {
public:
    /// `pf` outlives it.
    GuestDriver(VirtualPf& pf, std::uint32_t vf) : pf_(&pf), vf_(vf) {}

    void load();
    /// The device has reset its VF.
    void was_reset(bool stays_out);
    /// Does everything that is due now.
    void step();

    [[nodiscard]] bool is_loaded() const { return state_ == State::Loaded; }

private:
    enum class State : std::uint8_t { Absent, Asking, Releasing, Loaded, Resetting, Gone };

    [[nodiscard]] bool advance();
    [[nodiscard]] bool release_access();
    [[nodiscard]] bool finish_load();
    [[nodiscard]] bool answer_reset();
    [[nodiscard]] std::uint32_t core_state() const { return pf_->vf(vf_).state; }

    VirtualPf* pf_;
    std::uint32_t vf_;
    State state_ = State::Absent;
};

}  // namespace vgpu::simulator
