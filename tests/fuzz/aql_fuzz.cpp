// SPDX-License-Identifier: MIT
//
// AQL packets from a guest: headers, kernels, signals and barriers that may point anywhere.
#include "tests/fuzz/cp_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using vgpu::fuzz::CpHarness;
    if (size < AQL_PACKET_BYTES) return 0;
    CpHarness harness({data, size});
    harness.start(CpHarness::Kind::Aql);
    harness.live();
    return 0;
}
