// SPDX-License-Identifier: MIT
//
// The packet table, and the handlers of all packets that are not in transfers.cpp. A handler is
// called with the fixed part of the packet complete in packet_. After Blocked, Partial or Starved,
// the handler is called again for the same packet.
#include <algorithm>
#include <array>
#include <atomic>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/tc_op.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/mem/atomic.h"
#include "pf-driver/softgpu/mem/value.h"
#include "pf-driver/softgpu/regs/gpu_clock.h"
#include "pf-driver/softgpu/sdma/compare.h"
#include "pf-driver/softgpu/sdma/engine.h"

namespace vgpu::softgpu::sdma {

namespace {

constexpr std::uint64_t kIbAlignment = 32;
constexpr std::uint8_t kEqual = 3;
constexpr std::uint8_t kNotEqual = 4;
constexpr std::uint64_t kAllBits = ~0ull;
constexpr std::uint64_t kLowDword = ~0u;
constexpr std::uint32_t kRegisterBytes = sizeof(std::uint32_t);

}  // namespace

struct Engine::Row {
    std::uint32_t op;
    std::uint32_t sub_op;
    std::uint32_t dwords;
    Handler handler;
};

const Engine::Row* Engine::find_row(std::uint32_t header) {
    constexpr std::uint32_t kPlain = SDMA_SUB_OP_LINEAR;
    static constexpr std::array kRows = {
#define SDMA(name, op, dwords, action, doc) Row{(op), kPlain, (dwords), &Engine::action},
#include "pf-driver/hw/sdma.def"
#undef SDMA
        Row{SDMA_OP_COPY, SDMA_SUB_OP_COPY_SUBWIN, SDMA_SUBWIN_DWORDS, &Engine::copy_window},
        Row{SDMA_OP_TIMESTAMP, SDMA_SUB_OP_TIMESTAMP_GET, SDMA_TIMESTAMP_DWORDS,
            &Engine::get_timestamp},
        Row{SDMA_OP_TIMESTAMP, SDMA_SUB_OP_TIMESTAMP_GET_GLOBAL, SDMA_TIMESTAMP_DWORDS,
            &Engine::get_timestamp},
    };
    const std::uint32_t op = HW_GET(SDMA_HEADER, OP, header);
    const std::uint32_t sub_op = HW_GET(SDMA_HEADER, SUB_OP, header);
    const auto row = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const Row& r) { return r.op == op && r.sub_op == sub_op; });
    // A broadcast copy has op and sub-op of a linear copy; only a bit of the header differs.
    static constexpr Row kBroadcast{SDMA_OP_COPY, kPlain, SDMA_BROADCAST_DWORDS,
                                    &Engine::copy_broadcast};
    if (op == SDMA_OP_COPY && sub_op == kPlain && HW_GET(SDMA_COPY, BROADCAST, header) != 0)
        return &kBroadcast;
    return row == kRows.end() ? nullptr : &*row;
}

/// Fetches the header, checks the packet's length against available(), and only then fetches the
/// rest, because the guest may still be writing dwords beyond the write pointer.
Engine::Outcome Engine::run_packet() {
    call_ = {};
    if (queue_->skip != 0) return skip_dwords();
    length_ = 1;
    if (available() < length_) return truncation_outcome();
    if (!fetch(0, std::span(packet_).first(1))) return Outcome::Fault;
    const Row* row = find_row(packet_[0]);
    if (row == nullptr) return Outcome::Bad;
    length_ = row->dwords;
    if (available() < length_) return truncation_outcome();
    if (!fetch(1, std::span(packet_).subspan(1, row->dwords - 1))) return Outcome::Fault;
    return (this->*row->handler)();
}

std::uint64_t Engine::pair(unsigned dword) const {
    return join(packet_[dword], packet_[dword + 1]);
}

/// Leaves the data of the NOP to skip_dwords(), because the ring may not hold all of the data yet.
Engine::Outcome Engine::nop() {
    queue_->skip = HW_GET(SDMA_NOP, COUNT, packet_[0]);
    return Outcome::Done;
}

Engine::Outcome Engine::pass() {
    return Outcome::Done;
}

/// finish_packet() enters the IB after it has advanced the outer stream past this packet. Only a
/// privileged stream may choose the VMID of the IB; any other IB runs in the VMID of its caller.
Engine::Outcome Engine::indirect() {
    if (queue_->ib_depth >= kIbDepth) return Outcome::Bad;
    const std::uint32_t packet_vmid = HW_GET(SDMA_INDIRECT, VMID, packet_[0]);
    call_.address = pair(1) & ~(kIbAlignment - 1);
    call_.dwords = HW_GET(SDMA_INDIRECT_3, SIZE, packet_[3]);
    call_.vmid = is_privileged() ? packet_vmid : raw(vmid());
    return Outcome::Done;
}

/// The C++ fence orders the write after the writes of all earlier packets, because the guest's CPU
/// polls the dword.
Engine::Outcome Engine::fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool is_written =
        mem::store_value<std::uint32_t>(port(), GpuVa{pair(1) & ~3ull}, packet_[3]);
    return is_written ? Outcome::Done : Outcome::Fault;
}

Engine::Outcome Engine::trap() {
    if (HW_GET(SDMA_CNTL, TRAP_ENABLE, get(REG_SDMA0_SDMA0_CNTL)) == 0) return Outcome::Done;
    ih_iv_entry entry{};
    entry.client_id = static_cast<std::uint8_t>(IH_CLIENT_SDMA0 + index_);
    entry.source_id = IH_SOURCE_SDMA_TRAP;
    // Ring id 0 is the kernel's ring, 1 and 2 are the user queues; 3, the page queue, is not
    // modelled.
    entry.ring_id = static_cast<std::uint8_t>(queue_ - state_.queues.data());
    entry.vmid = raw(vmid());
    entry.pasid = queue_->pasid;
    entry.source_data[0] = HW_GET(SDMA_TRAP_1, CONTEXT_ID, packet_[1]);
    hooks_.raise(entry);
    return Outcome::Done;
}

Engine::Outcome Engine::wait_for(const Wait& wait) {
    queue_->wait = wait;
    return Outcome::Blocked;
}

/// Signal: adds 1, or writes 1 with WRITE_ONE. Wait: subtracts 1 as soon as the value is not 0; if
/// the value changes between the load and the subtraction, the wait continues.
Engine::Outcome Engine::semaphore() {
    const std::uint64_t address = pair(1) & ~7ull;
    if (HW_GET(SDMA_SEM, SIGNAL, packet_[0]) != 0) {
        const bool writes_one = HW_GET(SDMA_SEM, WRITE_ONE, packet_[0]) != 0;
        const auto result = mem::perform_atomic(
            port(), {writes_one ? TC_OP_SWAP_64 : TC_OP_ADD_64, GpuVa{address}, 1, 0});
        return result.status == mem::AtomicStatus::Done ? Outcome::Done : Outcome::Fault;
    }
    std::uint64_t value = 0;
    if (!mem::load_value(port(), GpuVa{address}, value)) return Outcome::Fault;
    if (value != 0) {
        const auto taken =
            mem::perform_atomic(port(), {TC_OP_CMPSWAP_64, GpuVa{address}, value - 1, value});
        if (taken.status != mem::AtomicStatus::Done) return Outcome::Fault;
        if (taken.before == value) return Outcome::Done;
    }
    return wait_for(
        {WaitKind::Memory, kNotEqual, raw(vmid()), sizeof(value), 0, 0, kAllBits, address});
}

/// A poll with a retry count ends after the first read and that many retries, even if the condition
/// is still false. Each step() does one read.
Engine::Outcome Engine::poll() {
    if (HW_GET(SDMA_POLL_REGMEM, HDP_FLUSH, packet_[0]) != 0) return poll_hdp_flush();
    Wait wait;
    wait.function = static_cast<std::uint8_t>(HW_GET(SDMA_POLL_REGMEM, FUNCTION, packet_[0]));
    wait.reference = packet_[3];
    wait.mask = packet_[4];
    std::uint32_t value = 0;
    if (HW_GET(SDMA_POLL_REGMEM, MEM_POLL, packet_[0]) != 0) {
        wait.kind = WaitKind::Memory;
        wait.address = pair(1) & ~3ull;
        wait.vmid = raw(vmid());
        wait.width = sizeof(value);
        if (!mem::load_value(port(), GpuVa{wait.address}, value)) return Outcome::Fault;
    } else if (wait.function == 0) {
        // FUNCTION 0 is always true, so no register is read. User queues may therefore send such a
        // poll; ROCr does so in a flush.
        return Outcome::Done;
    } else if (!is_privileged()) {
        return Outcome::Bad;
    } else {
        wait.kind = WaitKind::Register;
        wait.address = packet_[1] / kRegisterBytes;
        value = regs_.read(RegisterIndex{packet_[1] / kRegisterBytes});
    }
    if (compare(wait.function, value & wait.mask, wait.reference)) return Outcome::Done;
    const std::uint32_t retries = HW_GET(SDMA_POLL_REGMEM_5, RETRY_COUNT, packet_[5]);
    if (retries == SDMA_POLL_FOREVER) return wait_for(wait);
    if (++queue_->polls > retries) return Outcome::Done;
    wait.kind = WaitKind::Retry;
    return wait_for(wait);
}

/// Writes dword 3 to the REQ register (dword 2) once, then waits until the DONE register (dword 1),
/// masked with dword 4, equals dword 3.
Engine::Outcome Engine::poll_hdp_flush() {
    if (!is_privileged()) return Outcome::Bad;
    const std::uint32_t done = packet_[1] / kRegisterBytes;
    if (queue_->progress == 0) {
        regs_.write(RegisterIndex{packet_[2] / kRegisterBytes}, packet_[3]);
        queue_->progress = 1;
    }
    const std::uint32_t value = regs_.read(RegisterIndex{done});
    if ((value & packet_[4]) == packet_[3]) return Outcome::Done;
    return wait_for({WaitKind::Register, kEqual, 0, 0, 0, packet_[3], packet_[4], done});
}

/// If memory does not hold the reference value, skips the next COUNT dwords (dwords, not packets).
Engine::Outcome Engine::conditional() {
    std::uint32_t value = 0;
    if (!mem::load_value(port(), GpuVa{pair(1) & ~3ull}, value)) return Outcome::Fault;
    if (value != packet_[3]) queue_->skip = HW_GET(SDMA_COND_EXE_4, COUNT, packet_[4]);
    return Outcome::Done;
}

/// With LOOP, a compare-and-swap that failed waits until memory holds the compare value, then runs
/// again. LOOP has no effect on other operations.
Engine::Outcome Engine::atomic() {
    const std::uint32_t operation = HW_GET(SDMA_ATOMIC, OPERATION, packet_[0]);
    const mem::AtomicRequest request{operation, GpuVa{pair(1)}, pair(3), pair(5)};
    const mem::AtomicResult result = mem::perform_atomic(port(), request);
    if (result.status == mem::AtomicStatus::Bad) return Outcome::Bad;
    if (result.status == mem::AtomicStatus::Fault) return Outcome::Fault;
    if (HW_GET(SDMA_ATOMIC, LOOP, packet_[0]) == 0) return Outcome::Done;
    const bool is_64 = (operation & ~TC_OP_NO_RETURN) == TC_OP_CMPSWAP_64;
    const bool is_32 = (operation & ~TC_OP_NO_RETURN) == TC_OP_CMPSWAP_32;
    const std::uint64_t mask = is_64 ? kAllBits : kLowDword;
    const std::uint64_t reference = request.compare & mask;
    if (!(is_64 || is_32) || result.before == reference) return Outcome::Done;
    const std::uint8_t width = is_64 ? sizeof(std::uint64_t) : sizeof(std::uint32_t);
    return wait_for(
        {WaitKind::Memory, kEqual, raw(vmid()), width, 0, reference, mask, raw(request.address)});
}

/// The time stamp of the engine is the GPU clock plus an offset, so only the offset is stored.
Engine::Outcome Engine::set_timestamp() {
    state_.time_offset = pair(1) - regs::gpu_ticks(clock_.now());
    return Outcome::Done;
}

/// The global time stamp is the GPU clock itself.
Engine::Outcome Engine::get_timestamp() {
    const bool is_global =
        HW_GET(SDMA_HEADER, SUB_OP, packet_[0]) == SDMA_SUB_OP_TIMESTAMP_GET_GLOBAL;
    const std::uint64_t ticks =
        regs::gpu_ticks(clock_.now()) + (is_global ? 0 : state_.time_offset);
    return mem::store_value(port(), GpuVa{pair(1) & ~7ull}, ticks) ? Outcome::Done : Outcome::Fault;
}

/// Only a privileged stream may write registers. Bytes that are not enabled keep the register's
/// stored value; get() is used because read() would call a handler, which may have side effects.
Engine::Outcome Engine::write_register() {
    if (!is_privileged()) return Outcome::Bad;
    const RegisterIndex index{HW_GET(SDMA_SRBM_WRITE_1, ADDR, packet_[1])};
    const std::uint32_t enables = HW_GET(SDMA_SRBM_WRITE, BYTE_EN, packet_[0]);
    std::uint32_t mask = 0;
    for (unsigned byte = 0; byte < kRegisterBytes; ++byte)
        if (bit(enables, byte)) mask |= 0xffu << (8 * byte);
    if (mask == 0) return Outcome::Done;
    const std::uint32_t kept = mask == ~0u ? 0 : regs_.get(index) & ~mask;
    regs_.write(index, kept | (packet_[2] & mask));
    return Outcome::Done;
}

}  // namespace vgpu::softgpu::sdma
