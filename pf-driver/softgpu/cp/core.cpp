// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/core.h"

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr unsigned kApertureShift = 48;

/// The queue's doorbell in 8-byte units from the start of the doorbell BAR. KFD numbers the
/// doorbells of a process by the low 10 bits, so users of this value keep only these bits.
std::uint32_t doorbell_id(const Queue& queue) {
    constexpr unsigned kDoorbellIdShift = 1;
    return raw(queue.doorbell()) >> kDoorbellIdShift;
}

}  // namespace

Core::Core(const CommandProcessor::Spec& spec_, regs::RegisterFile& registers_, Services& services_,
           const Clock& clock_)
    : spec(spec_),
      registers(registers_),
      services(services_),
      clock(clock_),
      memory(services_),
      dispatcher(spec_.compute_units, queues),
      contexts(spec_.workers) {
    if (spec.code != nullptr) code.emplace(*spec.code, isa::CodeShare::kVfChunks, spec.hot_runs);
    for (unsigned i = 0; i < kQueues; ++i) queues[i].id = QueueId{static_cast<std::uint8_t>(i)};
}

isa::Apertures Core::apertures(Vmid vmid) const {
    const std::uint32_t bases = scheduler.sh_mem_bases[raw(vmid)];
    isa::Apertures apertures;
    apertures.private_base = std::uint64_t{HW_GET(SH_MEM_BASES, PRIVATE_BASE, bases)}
                             << kApertureShift;
    apertures.shared_base = std::uint64_t{HW_GET(SH_MEM_BASES, SHARED_BASE, bases)}
                            << kApertureShift;
    return apertures;
}

isa::TrapHandler Core::trap_handler(const Queue& queue, Vmid vmid) const {
    return {.base = scheduler.trap_base[raw(vmid)],
            .memory = scheduler.trap_memory[raw(vmid)],
            .doorbell_id = doorbell_id(queue)};
}

isa::GlobalWaveSync* Core::wave_sync(Vmid vmid) {
    const std::uint8_t number = scheduler.wave_sync_number[raw(vmid)];
    return number == 0 ? nullptr : &scheduler.wave_sync[number - 1].sync;
}

void Core::raise(const Queue& queue, ih_source source, std::uint32_t data0) {
    ih_iv_entry entry{};
    entry.client_id = IH_CLIENT_GRBM_CP;
    entry.source_id = static_cast<std::uint8_t>(source);
    entry.ring_id = queue.ring_id();
    entry.vmid = raw(queue.vmid());
    entry.pasid = queue.state.pasid;
    entry.source_data[0] = data0;
    services.raise(entry);
}

void Core::raise_eop(const Queue& queue, std::uint32_t context_id) {
    raise(queue, IH_SOURCE_CP_EOP, context_id);
}

void Core::raise_packet_error(const Queue& queue, ih_packet_error error) {
    if (raw(queue.vmid()) == 0) return;
    raise(queue, IH_SOURCE_CP_BAD_OPCODE,
          HW_PREP(CP_BAD_OPCODE_0, DOORBELL_ID, doorbell_id(queue)) |
              HW_PREP(CP_BAD_OPCODE_0, ERROR, static_cast<std::uint32_t>(error)));
}

/// The payload is split over three fields (DATA and DATA_HI of dword 0, DATA of dword 1); the other
/// fields describe the wave (Linux 6.12, amdkfd/kfd_int_process_v9.c, SQ_INTERRUPT_WORD_WAVE).
void Core::raise_message(Vmid vmid, const Message& message) {
    const std::uint32_t payload = message.payload;
    const std::uint32_t hw_id = message.hw_id;
    constexpr unsigned kHiShift = SQ_INTERRUPT_0__DATA__WIDTH;
    constexpr unsigned kTopShift = kHiShift + SQ_INTERRUPT_0__DATA_HI__WIDTH;
    ih_iv_entry entry{};
    entry.client_id = IH_CLIENT_SE0SH;
    entry.source_id = IH_SOURCE_SQ;
    entry.vmid = raw(vmid);
    entry.pasid = services.pasid_of(vmid);
    entry.source_data[0] = HW_PREP(SQ_INTERRUPT_0, DATA, payload) |
                           HW_PREP(SQ_INTERRUPT_0, SH_ID, HW_GET(SQ_WAVE_HW_ID, SH_ID, hw_id)) |
                           HW_PREP(SQ_INTERRUPT_0, PRIV, message.is_privileged ? 1u : 0u) |
                           HW_PREP(SQ_INTERRUPT_0, WAVE_ID, HW_GET(SQ_WAVE_HW_ID, WAVE_ID, hw_id)) |
                           HW_PREP(SQ_INTERRUPT_0, SIMD_ID, HW_GET(SQ_WAVE_HW_ID, SIMD_ID, hw_id)) |
                           HW_PREP(SQ_INTERRUPT_0, CU_ID, HW_GET(SQ_WAVE_HW_ID, CU_ID, hw_id)) |
                           HW_PREP(SQ_INTERRUPT_0, SE_ID, HW_GET(SQ_WAVE_HW_ID, SE_ID, hw_id)) |
                           HW_PREP(SQ_INTERRUPT_0, ENCODING, IH_SQ_ENCODING_WAVE) |
                           HW_PREP(SQ_INTERRUPT_0, DATA_HI, payload >> kHiShift);
    entry.source_data[1] = HW_PREP(SQ_INTERRUPT_1, DATA, payload >> kTopShift);
    services.raise(entry);
}

void Core::halt(Queue& queue, Halt why) {
    queue.state.halt = why;
    queue.state.wait = {};
    queue.state.progress = 0;
    // the caller may drop the queue's kernels, which makes room
    if (has_waiting_restore) wake();
}

void Core::fault(Queue& queue) {
    fault(queue, memory.fault_vmid(), memory.fault());
}

/// Like hardware with XNACK off, does not retry the access. So the fault is reported once, and the
/// queue stays halted.
void Core::fault(Queue& queue, Vmid vmid, const mem::Fault& what) {
    count_fault(vmid, what);
    halt(queue, Halt::Fault);
    dispatcher.drop(queue.id);
}

void Core::count_fault(Vmid vmid, const mem::Fault& what) {
    ++counters.faults;
    services.report_fault(vmid, what);
}

void Core::refuse(Queue& queue, ih_source source, std::uint32_t header) {
    ++counters.bad_packets;
    halt(queue, Halt::BadPacket);
    dispatcher.drop(queue.id);
    // For a bad opcode of a user queue, KFD expects an error code and a doorbell, not the header.
    if (source != IH_SOURCE_CP_BAD_OPCODE || raw(queue.vmid()) == 0) raise(queue, source, header);
    if (source != IH_SOURCE_CP_PRIV_INSTR) raise_packet_error(queue, IH_PACKET_ERROR_UNSUPPORTED);
}

void Core::postpone(std::uint64_t ns) {
    for (Queue& queue : queues)
        if (queue.state.stop_deadline != kNoDeadline) queue.state.stop_deadline += ns;
    for (ProcessState& process : scheduler.processes) process.mapped_at += ns;
    for (WaveSyncBank& bank : scheduler.wave_sync) bank.mapped_at += ns;
}

void Core::wake() {
    needs_check = true;
    services.work_arrived();
}

void Core::invalidate_code(std::uint16_t vmids) {
    for (unsigned i = 0; i < CP_VMIDS; ++i)
        if (bit(vmids, i)) code_epoch[i].fetch_add(1, std::memory_order_release);
}

}  // namespace vgpu::softgpu::cp
