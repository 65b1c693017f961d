// SPDX-License-Identifier: MIT
//
// GuestDriver: of one guest's driver what the PF core hears and says. It loads in full access for
// as long as one message takes. Told of a reset, it says that it is ready at once; when the VF is
// provisioned anew it loads again. A guest that is to stay out says nothing from its reset on.
//
//   Absent --load--> Asking --access--> Releasing --READY--> Loaded
//                      ^                                        | was_reset
//                      +---------- VF is PROVISIONED -------- Resetting   (Gone, if it stays out)
//
// Called by a ProductRun between two events of the device.
#pragma once

#include "simulator/virtual_pf.h"

#include <cstdint>

namespace vgpu::simulator {

class GuestDriver {
public:
    /// `pf` outlives it.
    GuestDriver(VirtualPf& pf, std::uint32_t vf) : pf_(&pf), vf_(vf) {}

    void load();
    /// The device has reset its VF.
    void was_reset(bool stays_out);
    /// Does what there is to do now.
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
