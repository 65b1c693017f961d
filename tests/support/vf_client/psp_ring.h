// SPDX-License-Identifier: MIT
//
// PspRing: commands to the security processor, as psp_v3_1 sends them in a VF. GBR_IH_SET goes by
// registers. SETUP_VMR, LOAD_IP_FW and PROG_REG go by frames in a ring in VRAM; PspRing waits for
// the fence of each and checks its response status.
#pragma once

#include <array>
#include <cstdint>

#include "tests/support/vf_client/gart.h"

namespace vgpu::test {

class PspRing {
public:
    PspRing(VfDevice& device, VramHeap& vram);

    /// Sends GBR_IH_SET for IH client configuration `id`.
    void set_ih_client(std::uint32_t id, std::uint32_t value);
    void create();
    void destroy();
    void setup_vmr(std::uint64_t address, std::uint32_t bytes);
    void load_firmware(std::uint64_t address, std::uint32_t bytes, std::uint32_t type);
    /// Sets IH_RB_CNTL of IH ring 0..2 by PROG_REG.
    void program_ih(std::uint32_t ring, std::uint32_t value);
    /// Sends any command; returns the response status.
    std::uint32_t submit(std::uint32_t id, std::array<std::uint32_t, 5> words);

private:
    /// Writes a ring command and waits for the reply; throws on a status other than 0.
    void ring_command(std::uint32_t command);
    void submit_checked(std::uint32_t id, std::array<std::uint32_t, 5> words);

    VfDevice& device_;
    Buffer ring_;
    Buffer command_;
    Buffer fence_;
    std::uint32_t wptr_ = 0;  // dwords
    std::uint32_t fence_value_ = 0;
};

}  // namespace vgpu::test
