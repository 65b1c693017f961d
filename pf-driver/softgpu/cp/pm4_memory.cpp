// SPDX-License-Identifier: MIT
//
// PM4 packets that move data, wait for a value, write fences or invalidate caches.
#include <algorithm>
#include <array>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/tc_op.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr std::uint64_t kDwordMask = ~3ull;
constexpr std::uint64_t kQwordMask = ~7ull;
constexpr std::uint64_t kAll = ~0ull;

/// The kind of a source or destination. A packet with an unsupported operand is refused.
enum class Operand : std::uint8_t { Register, Memory, Immediate, Clock, Unsupported };

// Indexed by SRC_SEL of COPY_DATA (kCopySource), and by DST_SEL of COPY_DATA and WRITE_DATA
// (kDestination).
constexpr std::array<Operand, 16> kCopySource = {
    Operand::Register,    Operand::Memory,      Operand::Memory,      Operand::Unsupported,
    Operand::Unsupported, Operand::Immediate,   Operand::Unsupported, Operand::Unsupported,
    Operand::Unsupported, Operand::Clock,       Operand::Unsupported, Operand::Unsupported,
    Operand::Unsupported, Operand::Unsupported, Operand::Unsupported, Operand::Unsupported};
constexpr std::array<Operand, 16> kDestination = {
    Operand::Register,    Operand::Memory,      Operand::Memory,      Operand::Unsupported,
    Operand::Unsupported, Operand::Memory,      Operand::Unsupported, Operand::Unsupported,
    Operand::Memory,      Operand::Unsupported, Operand::Unsupported, Operand::Unsupported,
    Operand::Unsupported, Operand::Unsupported, Operand::Unsupported, Operand::Unsupported};

/// What a RELEASE_MEM does for one value of INT_SEL.
struct ReleaseAction {
    bool is_known = false;
    bool has_data = false;
    bool has_interrupt = false;
};
// INTERRUPT_IF_* compare a value in memory first. The device refuses them: no driver sends them,
// and no public document describes them.
constexpr std::array<ReleaseAction, 8> kReleaseActions = {{
    {true, true, false},  // NO_INTERRUPT
    {true, false, true},  // INTERRUPT_ONLY
    {true, true, true},   // INTERRUPT_AFTER_WRITE
    {true, true, false},  // DATA_AFTER_CONFIRM
    {true, true, true},   // INTERRUPT_ALWAYS
    {},                   // INTERRUPT_IF_32
    {},                   // INTERRUPT_IF_64
    {},
}};

constexpr std::uint8_t kAlways = 0;              // a FUNCTION of WAIT_REG_MEM
constexpr std::uint32_t kWaitMemory = 1;         // MEM_SPACE of WAIT_REG_MEM
constexpr std::uint32_t kWaitWriteThenWait = 1;  // OPERATION of WAIT_REG_MEM
constexpr std::uint32_t kDmaGds = 1;             // SRC_SEL and DST_SEL of DMA_DATA
constexpr std::uint32_t kDmaImmediate = 2;       // SRC_SEL of DMA_DATA
constexpr std::uint32_t kDmaNowhere = 2;         // DST_SEL of DMA_DATA

/// A register index in the packet has 18 bits; write_register() refuses HW_REG_COUNT and above.
Outcome write_data_registers(Packet& packet) {
    const bool is_one_address = HW_GET(WRITE_DATA_1, ONE_ADDR, packet.dword(1)) != 0;
    const std::uint32_t first = packet.dword(2) & (HW_REG_COUNT * 2 - 1);
    return write_registers(packet, first, is_one_address, packet.body.subspan(3));
}

/// A single dword is an atomic store. With ONE_ADDR, every dword goes to the same address, so only
/// the last one is stored.
Outcome write_data_memory(Packet& packet) {
    const GpuVa va{packet.pair(2) & kDwordMask};
    const std::span<const std::uint32_t> data = packet.body.subspan(3);
    Memory& memory = packet.core.memory;
    if (data.size() == 1)
        return memory.store<std::uint32_t>(packet.vmid, va, data[0]) ? Outcome::Done
                                                                     : Outcome::Fault;
    if (HW_GET(WRITE_DATA_1, ONE_ADDR, packet.dword(1)) != 0)
        return memory.store<std::uint32_t>(packet.vmid, va, data.back()) ? Outcome::Done
                                                                         : Outcome::Fault;
    return memory.write(packet.vmid, va, std::as_bytes(data)) ? Outcome::Done : Outcome::Fault;
}

Outcome load_source(Packet& packet, bool is_wide, std::uint64_t& value) {
    const std::uint32_t select = HW_GET(COPY_DATA_1, SRC_SEL, packet.dword(1));
    const std::uint64_t address = packet.pair(2);
    switch (kCopySource[select]) {
        case Operand::Register: {
            std::uint32_t low = 0;
            std::uint32_t high = 0;
            if (!read_register(packet, low32(address), low)) return Outcome::PrivilegedRegister;
            if (is_wide && !read_register(packet, low32(address) + 1, high))
                return Outcome::PrivilegedRegister;
            value = join(low, high);
            return Outcome::Done;
        }
        case Operand::Memory: {
            Memory& memory = packet.core.memory;
            const auto wide =
                is_wide ? memory.load<std::uint64_t>(packet.vmid, GpuVa{address & kQwordMask})
                        : std::optional<std::uint64_t>(
                              memory.load<std::uint32_t>(packet.vmid, GpuVa{address & kDwordMask}));
            if (!wide) return Outcome::Fault;
            value = *wide;
            return Outcome::Done;
        }
        case Operand::Immediate:
            value = address;
            return Outcome::Done;
        case Operand::Clock:
            value = packet.core.ticks();
            return Outcome::Done;
        case Operand::Unsupported:
            break;
    }
    return Outcome::BadPacket;
}

Outcome store_value(Packet& packet, bool is_wide, std::uint64_t value) {
    const std::uint32_t select = HW_GET(COPY_DATA_1, DST_SEL, packet.dword(1));
    const std::uint64_t address = packet.pair(4);
    Memory& memory = packet.core.memory;
    switch (kDestination[select]) {
        case Operand::Register:
            if (!write_register(packet, low32(address), low32(value)))
                return Outcome::PrivilegedRegister;
            return !is_wide || write_register(packet, low32(address) + 1, high32(value))
                       ? Outcome::Done
                       : Outcome::PrivilegedRegister;
        case Operand::Memory: {
            const bool is_stored =
                is_wide
                    ? memory.store<std::uint64_t>(packet.vmid, GpuVa{address & kQwordMask}, value)
                    : memory.store<std::uint32_t>(packet.vmid, GpuVa{address & kDwordMask},
                                                  low32(value));
            return is_stored ? Outcome::Done : Outcome::Fault;
        }
        default:
            return Outcome::BadPacket;
    }
}

/// Copies or fills `bytes` bytes for a DMA_DATA packet, after the first `done` bytes. False if
/// memory faults.
bool dma_part(Packet& packet, std::uint64_t done, std::size_t bytes) {
    Memory& memory = packet.core.memory;
    std::vector<std::byte> buffer(bytes);
    if (HW_GET(DMA_DATA_1, SRC_SEL, packet.dword(1)) == kDmaImmediate) {
        const std::uint32_t pattern = packet.dword(2);
        for (std::size_t i = 0; i < bytes; ++i)
            buffer[i] = bytes_of(pattern)[(done + i) % sizeof(pattern)];
    } else if (!memory.read(packet.vmid, GpuVa{packet.pair(2) + done}, buffer)) {
        return false;
    }
    return memory.write(packet.vmid, GpuVa{packet.pair(4) + done}, buffer);
}

/// False for an INT_SEL that is not known in kReleaseActions, an unknown DATA_SEL, data of the
/// global data share (GDS), which the device lacks, or a destination other than memory and L2.
bool is_release_possible(std::uint32_t select) {
    const std::uint32_t to = HW_GET(RELEASE_MEM_2, DST_SEL, select);
    return kReleaseActions[HW_GET(RELEASE_MEM_2, INT_SEL, select)].is_known &&
           HW_GET(RELEASE_MEM_2, DATA_SEL, select) < PM4_RELEASE_GDS_DATA &&
           (to == PM4_RELEASE_TO_MEMORY || to == PM4_RELEASE_TO_L2);
}

/// Stores the data of a RELEASE_MEM. False if memory faults.
bool store_fence(Packet& packet) {
    Memory& memory = packet.core.memory;
    const std::uint64_t address = packet.pair(3);
    const std::uint64_t data = packet.pair(5);
    switch (HW_GET(RELEASE_MEM_2, DATA_SEL, packet.dword(2))) {
        case PM4_RELEASE_DATA_32:
            return memory.store<std::uint32_t>(packet.vmid, GpuVa{address & kDwordMask},
                                               low32(data));
        case PM4_RELEASE_DATA_64:
            return memory.store<std::uint64_t>(packet.vmid, GpuVa{address & kQwordMask}, data);
        case PM4_RELEASE_GPU_CLOCK:
            return memory.store<std::uint64_t>(packet.vmid, GpuVa{address & kQwordMask},
                                               packet.core.ticks());
        case PM4_RELEASE_CP_PERFCOUNTER:
            // the CP's counters are always 0, because softgpu has no registers to start them
            return memory.store<std::uint64_t>(packet.vmid, GpuVa{address & kQwordMask}, 0);
        default:
            return true;
    }
}

}  // namespace

Outcome handle_write_data(Packet& packet) {
    switch (kDestination[HW_GET(WRITE_DATA_1, DST_SEL, packet.dword(1))]) {
        case Operand::Register:
            return write_data_registers(packet);
        case Operand::Memory:
            return write_data_memory(packet);
        default:
            return Outcome::BadPacket;
    }
}

Outcome handle_copy_data(Packet& packet) {
    const bool is_wide = HW_GET(COPY_DATA_1, COUNT_SEL, packet.dword(1)) != 0;
    std::uint64_t value = 0;
    const Outcome loaded = load_source(packet, is_wide, value);
    return loaded == Outcome::Done ? store_value(packet, is_wide, value) : loaded;
}

/// Each call copies as many bytes as the budget allows; `progress` counts the bytes copied.
Outcome handle_dma_data(Packet& packet) {
    const std::uint32_t command = packet.dword(6);
    // SAS and DAS select registers instead of memory; softgpu does not support this
    if (HW_GET(DMA_DATA_6, SAS, command) != 0 || HW_GET(DMA_DATA_6, DAS, command) != 0)
        return Outcome::BadPacket;
    const std::uint32_t from = HW_GET(DMA_DATA_1, SRC_SEL, packet.dword(1));
    const std::uint32_t to = HW_GET(DMA_DATA_1, DST_SEL, packet.dword(1));
    if (from == kDmaGds || to == kDmaGds) return Outcome::BadPacket;  // the device has no GDS
    if (to == kDmaNowhere) return Outcome::Done;  // a prefetch into L2: no effect
    const std::uint64_t total = HW_GET(DMA_DATA_6, BYTE_COUNT, command);
    std::uint64_t& done = packet.queue.state.progress;
    const std::uint64_t part = std::min(total - std::min(done, total), packet.budget.bytes);
    if (!dma_part(packet, done, part)) return Outcome::Fault;
    done += part;
    packet.budget.bytes -= part;
    return done >= total ? Outcome::Done : Outcome::Partial;
}

Outcome handle_atomic_mem(Packet& packet) {
    mem::AtomicRequest request;
    request.operation = HW_GET(ATOMIC_MEM_1, ATOMIC, packet.dword(1));
    request.address = GpuVa{packet.pair(2)};
    request.source = packet.pair(4);
    request.compare = packet.pair(6);
    const mem::AtomicResult result = packet.core.memory.atomic(packet.vmid, request);
    if (result.status == mem::AtomicStatus::Fault) return Outcome::Fault;
    if (result.status == mem::AtomicStatus::Bad) return Outcome::BadPacket;
    // The loop form repeats the operation, once per poll, until it finds the compare value in
    // memory. A compare-and-swap has no effect before that, so it only waits for the value. Codes
    // of 64-bit operations are larger than those of 32-bit operations.
    const std::uint32_t code = request.operation & ~TC_OP_NO_RETURN;
    const bool is_wide = code >= TC_OP_SWAP_64;
    const bool has_effect = code != TC_OP_CMPSWAP_32 && code != TC_OP_CMPSWAP_64;
    const std::uint64_t mask = is_wide ? kAll : 0xffff'ffffull;
    const bool is_loop = HW_GET(ATOMIC_MEM_1, COMMAND, packet.dword(1)) == 1;
    if (!is_loop || (result.before & mask) == (request.compare & mask)) return Outcome::Done;
    Wait& wait = packet.queue.state.wait;
    wait.kind = WaitKind::Atomic;
    wait.function = has_effect ? kAlways : std::uint8_t{PM4_COMPARE_EQUAL};
    wait.vmid = raw(packet.vmid);
    wait.wide = is_wide ? 1 : 0;
    wait.address = raw(request.address);
    wait.mask = mask;
    wait.reference = request.compare & mask;
    return Outcome::Blocked;
}

/// Waits until the queue's earlier kernels have ended. Cache actions (TC_WB, TC_INV, TCL1_INV and
/// others) do nothing, because softgpu has no data caches.
Outcome handle_release_mem(Packet& packet) {
    Queue& queue = packet.queue;
    const std::uint32_t select = packet.dword(2);
    if (!is_release_possible(select)) return Outcome::BadPacket;
    if (packet.core.dispatcher.in_flight(queue.id) != 0) {
        queue.state.wait.kind = WaitKind::Dispatches;
        return Outcome::Blocked;
    }
    const ReleaseAction& action = kReleaseActions[HW_GET(RELEASE_MEM_2, INT_SEL, select)];
    if (action.has_data && !store_fence(packet)) return Outcome::Fault;
    const std::uint32_t context = packet.body.size() > 6 ? packet.dword(7) : 0;
    if (action.has_interrupt) packet.core.raise_eop(queue, context);
    return Outcome::Done;
}

/// With SH_ICACHE_ACTION, drops the decoded code of the VMID. softgpu has no data caches to
/// invalidate.
Outcome handle_acquire_mem(Packet& packet) {
    if (HW_GET(ACQUIRE_MEM_1, SH_ICACHE_ACTION, packet.dword(1)) != 0)
        packet.core.invalidate_code(static_cast<std::uint16_t>(1u << raw(packet.vmid)));
    return Outcome::Done;
}

/// Checks the condition at once, because most conditions are already met.
Outcome handle_wait_reg_mem(Packet& packet) {
    const std::uint32_t control = packet.dword(1);
    const bool writes_first = HW_GET(WAIT_REG_MEM_1, OPERATION, control) == kWaitWriteThenWait;
    const bool is_memory = HW_GET(WAIT_REG_MEM_1, MEM_SPACE, control) == kWaitMemory;
    Wait wait;
    wait.kind = is_memory ? WaitKind::Memory : WaitKind::Register;
    wait.function = static_cast<std::uint8_t>(HW_GET(WAIT_REG_MEM_1, FUNCTION, control));
    wait.vmid = raw(packet.vmid);
    wait.reference = packet.dword(4);
    wait.mask = packet.dword(5);
    wait.address = packet.pair(2) & kDwordMask;
    wait.index = packet.dword(writes_first ? 3 : 2);
    if (!is_memory) {
        std::uint32_t ignored = 0;
        if (!read_register(packet, wait.index, ignored)) return Outcome::PrivilegedRegister;
        // Write the register of dword 2 only once: `progress` records the write.
        if (writes_first && packet.queue.state.progress == 0 &&
            !write_register(packet, packet.dword(2), packet.dword(4)))
            return Outcome::PrivilegedRegister;
        // With writes_first, the reference is also the value that was written, so it may have bits
        // outside the mask.
        if (writes_first) wait.reference &= wait.mask;
    } else if (!packet.core.memory.load<std::uint32_t>(packet.vmid, GpuVa{wait.address})) {
        return Outcome::Fault;
    }
    packet.queue.state.progress = 1;
    packet.queue.state.wait = wait;
    if (!is_wait_over(packet.core, packet.queue)) return Outcome::Blocked;
    packet.queue.state.wait = {};
    return Outcome::Done;
}

}  // namespace vgpu::softgpu::cp
