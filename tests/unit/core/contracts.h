// SPDX-License-Identifier: MIT
//
// Contracts of one term each, for the tests of the run-table scheduler.
#pragma once

#include <cstdint>

#include "pf-driver/uapi/vgpu_pf.h"

namespace vgpu::test {

inline vgpu_pf_contract cap(std::uint32_t rate_ppm, std::uint64_t burst_ns) {
    vgpu_pf_contract contract{};
    contract.rate_ppm = rate_ppm;
    contract.burst_ns = burst_ns;
    return contract;
}

inline vgpu_pf_contract priority_class(std::uint32_t number) {
    vgpu_pf_contract contract{};
    contract.priority_class = number;
    return contract;
}

inline vgpu_pf_contract strict() {
    vgpu_pf_contract contract{};
    contract.flags = VGPU_PF_CONTRACT_STRICT;
    return contract;
}

}  // namespace vgpu::test
