// SPDX-License-Identifier: MIT
//
// A CP with one AQL queue, for the tests of AQL packets and of their scratch memory.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {

class Aql : public testing::Test {
protected:
    void SetUp() override {
        rig.start_kiq();
        rig.start_hiq();
        queue = rig.make_aql_queue();
    }
    void run() {
        rig.map(queue);
        rig.pump();
    }
    void run_now() {
        rig.ring_doorbell(queue);
        rig.pump();
    }
    AqlKernel increment(std::uint64_t data, std::uint32_t items, std::uint64_t signal) {
        const KernelCode code = rig.load_kernel("array_increment");
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(data);
        kernel.group = {32, 1, 1};
        kernel.grid = {items, 1, 1};
        kernel.signal = signal;
        return kernel;
    }
    std::uint16_t header(std::uint64_t index) {
        return rig.memory.get<std::uint16_t>(queue.va + index * AQL_PACKET_BYTES);
    }
    std::uint64_t read_index() { return rig.memory.get<std::uint64_t>(queue.report); }
    std::int64_t error() { return rig.signal_value(queue.inactive_signal); }

    CpRig rig;
    Ring queue;
};

}  // namespace vgpu::test
