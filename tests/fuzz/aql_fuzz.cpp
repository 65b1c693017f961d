// SPDX-License-Identifier: MIT
//
// AQL packets from a guest: headers, kernels, signals and barriers that may point anywhere.
// Input: a kernel descriptor, then packets of 64 bytes; the bytes after the descriptor are also the
// machine code. The mutator changes most inputs into packets that the CP does not refuse at once:
// their kernels start, and their signals lie in memory that exists.
#include <algorithm>
#include <array>

#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/fuzz/cp_harness.h"

namespace {

using namespace vgpu::softgpu;

using vgpu::fuzz::kArena;

using Packet = std::span<std::byte, AQL_PACKET_BYTES>;

constexpr std::uint64_t kDescriptor = kArena;  // address 0 again, but not a null pointer
constexpr std::uint32_t kUserSgprs = 16;

/// `value` if it is in 1..max, else another value in that range.
template <typename T> T clamped(T value, std::uint32_t max) {
    return static_cast<T>(value == 0 || value > max ? 1 + value % max : value);
}

std::uint64_t signal_in_arena(std::uint64_t handle) {
    return handle % kArena & ~std::uint64_t{7};
}

void repair_kernel(Packet bytes) {
    auto packet = load<aql_kernel_dispatch>(bytes);
    packet.setup = clamped(packet.setup, 3);
    packet.workgroup_size_x = clamped(packet.workgroup_size_x, 2 * AQL_WAVE_LANES);
    packet.workgroup_size_y = clamped(packet.workgroup_size_y, 2);
    packet.workgroup_size_z = clamped(packet.workgroup_size_z, 2);
    packet.grid_size_x = clamped(packet.grid_size_x, 4 * AQL_WAVE_LANES);
    packet.grid_size_y = clamped(packet.grid_size_y, 2);
    packet.grid_size_z = clamped(packet.grid_size_z, 2);
    packet.private_segment_size %= 2 * sizeof(std::uint32_t);
    packet.group_segment_size %= AQL_MAX_LDS_BYTES + 1;
    packet.kernel_object = kDescriptor;
    packet.kernarg_address %= kArena;
    packet.completion_signal = signal_in_arena(packet.completion_signal);
    store(bytes, 0, packet);
}

void repair_barrier(Packet bytes) {
    auto packet = load<aql_barrier>(bytes);
    for (std::uint64_t& handle : packet.dep_signal) handle = signal_in_arena(handle);
    packet.completion_signal = signal_in_arena(packet.completion_signal);
    store(bytes, 0, packet);
}

void repair_ib(Packet bytes) {
    auto packet = load<aql_pm4_ib>(bytes);
    constexpr std::uint32_t kMaxDwords = 64;
    packet.ib_packet[0] = PM4_HEADER_OF(PM4_OP_INDIRECT_BUFFER, 3);
    packet.ib_packet[1] %= kArena;
    packet.ib_packet[2] = 0;
    packet.ib_packet[3] %= kMaxDwords;
    packet.completion_signal = signal_in_arena(packet.completion_signal);
    store(bytes, 0, packet);
}

void repair_vendor(Packet bytes) {
    auto packet = load<aql_barrier_value>(bytes);
    packet.format = clamped(packet.format, AQL_VENDOR_BARRIER_VALUE);
    packet.signal = signal_in_arena(packet.signal);
    packet.completion_signal = signal_in_arena(packet.completion_signal);
    store(bytes, 0, packet);
    if (packet.format == AQL_VENDOR_PM4_IB) repair_ib(bytes);
}

struct Kind {
    std::uint8_t type;
    void (*repair)(Packet);
};
constexpr std::array kKinds = {
    Kind{AQL_TYPE_KERNEL_DISPATCH, repair_kernel},
    Kind{AQL_TYPE_BARRIER_AND, repair_barrier},
    Kind{AQL_TYPE_BARRIER_OR, repair_barrier},
    Kind{AQL_TYPE_VENDOR, repair_vendor},
};

void repair_packet(Packet bytes) {
    const auto type = static_cast<std::uint8_t>(bytes[0]);
    const auto known = std::ranges::find(kKinds, type, &Kind::type);
    const Kind& kind = known != kKinds.end() ? *known : kKinds[type % kKinds.size()];
    store(std::span<std::byte>(bytes), 0, kind.type);
    kind.repair(bytes);
}

/// Makes the kernel start somewhere behind its descriptor.
void repair_descriptor(Packet bytes) {
    auto kernel = load<aql_kernel_descriptor>(bytes);
    const auto entry = static_cast<std::uint64_t>(kernel.kernel_code_entry_byte_offset);
    kernel.kernel_code_entry_byte_offset =
        static_cast<std::int64_t>(entry % (8 * AQL_PACKET_BYTES) & ~std::uint64_t{3});
    kernel.compute_pgm_rsrc2 =
        HW_SET(COMPUTE_PGM_RSRC2, USER_SGPR, kernel.compute_pgm_rsrc2, kUserSgprs);
    store(bytes, 0, kernel);
}

void repair(std::span<std::byte> input) {
    repair_descriptor(input.first<AQL_PACKET_BYTES>());
    for (auto rest = input.subspan(AQL_PACKET_BYTES); rest.size() >= AQL_PACKET_BYTES;
         rest = rest.subspan(AQL_PACKET_BYTES))
        repair_packet(rest.first<AQL_PACKET_BYTES>());
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max);
    if (size >= 2 * AQL_PACKET_BYTES && seed % 4 != 0)
        repair(std::as_writable_bytes(std::span(data, size)));
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using vgpu::fuzz::CpHarness;
    if (size < 2 * AQL_PACKET_BYTES) return 0;
    const std::span input(data, size);
    CpHarness harness(input, input.subspan(AQL_PACKET_BYTES));
    harness.start(CpHarness::Kind::Aql);
    harness.live();
    return 0;
}
