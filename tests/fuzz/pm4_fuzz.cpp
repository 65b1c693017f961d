// SPDX-License-Identifier: MIT
//
// Fuzzes PM4 packets from a guest, in a privileged ring (with scheduler packets) or in a user
// queue. Input: a dword whose bit 0 chooses the ring, then the packets. The mutator changes the
// dwords where packets begin into valid headers, so that mutations reach the handlers and do not
// end at an unknown opcode. It leaves one input in four unrepaired.
#include <algorithm>
#include <array>

#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/fuzz/cp_harness.h"

namespace {

using namespace vgpu::softgpu;

constexpr std::size_t kDword = sizeof(std::uint32_t);
constexpr std::uint32_t kMoreBody = 8;  // most dwords beyond min_body in a repaired packet

struct Opcode {
    std::uint32_t opcode;
    std::uint32_t min_body;
    std::uint32_t max_body;
};

constexpr std::array kOpcodes = {
#define PM4(name, opcode, min_body, max_body, action, doc) Opcode{opcode, min_body, max_body},
#include "pf-driver/hw/pm4.def"
#undef PM4
};

/// Makes `header` a header of the table, if it is not one; returns the dwords of the packet's body.
std::uint32_t repair_header(std::uint32_t& header) {
    const std::uint32_t opcode = HW_GET(PM4_HEADER, OPCODE, header);
    const auto known = std::ranges::find(kOpcodes, opcode, &Opcode::opcode);
    const Opcode& row = known != kOpcodes.end() ? *known : kOpcodes[opcode % kOpcodes.size()];
    const std::uint32_t limit = std::min(row.max_body, row.min_body + kMoreBody);
    const std::uint32_t wished = HW_GET(PM4_HEADER, COUNT, header) + 1u;
    const std::uint32_t body = row.min_body <= wished && wished <= limit
                                   ? wished
                                   : row.min_body + wished % (limit - row.min_body + 1);
    header = PM4_HEADER_OF(row.opcode, body) | (header & HW_FIELD_MASK(PM4_HEADER, SHADER_TYPE));
    return body;
}

void repair_packets(std::span<std::byte> stream) {
    while (stream.size() >= kDword) {
        auto header = load<std::uint32_t>(stream);
        const std::size_t bytes = (1u + repair_header(header)) * kDword;
        store(stream, 0, header);
        stream = stream.subspan(std::min(bytes, stream.size()));
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max);
    if (size > kDword && seed % 4 != 0)
        repair_packets(std::as_writable_bytes(std::span(data + kDword, size - kDword)));
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using vgpu::fuzz::CpHarness;
    if (size < 2 * kDword) return 0;
    const bool is_kernel = (data[0] & 1u) != 0;
    const std::span packets(data + kDword, size - kDword);
    CpHarness harness(packets, packets);
    harness.start(is_kernel ? CpHarness::Kind::Kiq : CpHarness::Kind::User);
    harness.live();
    return 0;
}
