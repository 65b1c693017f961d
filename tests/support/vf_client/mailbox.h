// SPDX-License-Identifier: MIT
//
// Mailbox: the guest's side of the PF <-> VF mailbox, with the accesses and limits of the stock
// driver (ack 500 ms, message 6 s). Like that driver, it reads RCV_DW0 and ignores VALID.
#pragma once

#include <array>
#include <cstdint>

#include "tests/support/vf_client/device.h"

namespace vgpu::test {

class Mailbox {
public:
    explicit Mailbox(VfDevice& device) : device_(device) {}

    /// Sends one message; false if the PF did not acknowledge in time (the stock driver then
    /// continues).
    bool send(std::uint32_t event, std::array<std::uint32_t, 3> data = {});
    /// Waits for `event`, acknowledges it; false if it did not come within `limit`.
    bool receive(std::uint32_t event, milliseconds limit);
    /// Waits for `event`, such as FLR_NOTIFICATION_CMPL, without acknowledging it.
    bool peek(std::uint32_t event, milliseconds limit);
    /// send(), then receive(); throws if the answer does not come within the guest's own limit.
    void request(std::uint32_t event, std::uint32_t answer);
    void enable_interrupts();

    /// Time from the last request() to its answer.
    [[nodiscard]] std::chrono::nanoseconds last_answer() const { return last_answer_; }

private:
    VfDevice& device_;
    std::chrono::nanoseconds last_answer_{};
};

}  // namespace vgpu::test
