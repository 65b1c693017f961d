// SPDX-License-Identifier: MIT
//
// Signal: an amd_signal_t in memory of a process, with an event slot so that its completion raises
// an interrupt.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pf-driver/hw/aql.h"
#include "tests/support/vf_client/memory_word.h"

namespace vgpu::test {

struct Signal {
    Buffer memory;  ///< 64 bytes
    std::uint32_t event_id = 0;

    [[nodiscard]] std::uint64_t address() const { return memory.address; }
    [[nodiscard]] std::int64_t value() const {
        return memory.load<std::int64_t>(offsetof(aql_signal, value));
    }
    void set(std::int64_t value) const { memory.store(offsetof(aql_signal, value), value); }
    [[nodiscard]] std::uint64_t start_ts() const {
        return memory.load<std::uint64_t>(offsetof(aql_signal, start_ts));
    }
    [[nodiscard]] std::uint64_t end_ts() const {
        return memory.load<std::uint64_t>(offsetof(aql_signal, end_ts));
    }
};

}  // namespace vgpu::test
