// SPDX-License-Identifier: MIT
//
// GuestDriver: the part of a guest's driver that the PF core sees. It loads within full access,
// with a single message. After a reset it reports ready, and loads again once the VF is
// provisioned, unless it stays out.
//
//   Absent --load--> Asking --access--> Releasing --READY--> Loaded
//                      ^                                       | was_reset
//                      +---------- VF is PROVISIONED -------- Resetting   (Gone, if it stays out)
//
// Called by a ProductRun between device events.
#pragma once

#include "daemon/simulator/virtual_pf.h"

#include <cstdint>

namespace vgpu::simulator {

class GuestDriver {
public:
    /// `pf` must outlive it.
    GuestDriver(VirtualPf& pf, std::uint32_t vf) : pf_(&pf), vf_(vf) {}

    void load();
    void was_reset(bool stays_out);
    /// Does all that is due.
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
