// SPDX-License-Identifier: MIT
//
// PM4 packets from a guest, in a privileged ring (scheduler packets and all) or in a user queue.
#include "tests/fuzz/cp_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using vgpu::fuzz::CpHarness;
    if (size < 8) return 0;
    const bool is_kernel = (data[0] & 1u) != 0;
    CpHarness harness({data + 4, size - 4});
    harness.start(is_kernel ? CpHarness::Kind::Kiq : CpHarness::Kind::User);
    harness.live();
    return 0;
}
