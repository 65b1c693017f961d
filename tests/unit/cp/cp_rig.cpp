// SPDX-License-Identifier: MIT
#include "tests/unit/cp/cp_rig.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/mqd.h"
#include "tests/support/code_object.h"
#include "tests/support/isa/tier.h"

namespace vgpu::test {

using softgpu::RegisterIndex;
using softgpu::StepResult;
using softgpu::mem::Access;

namespace {

class ArenaPort final : public softgpu::mem::Port {
public:
    ArenaPort(FlatMemory& memory, const std::atomic<std::uint64_t>& epoch)
        : Port(epoch), memory_(memory) {}

protected:
    Translation walk(GpuVa va, Access access) override {
        if (memory_.on_walk) memory_.on_walk(va, access);
        std::vector<std::byte>& bytes = memory_.bytes();
        const std::uint64_t page = softgpu::raw(va) / kPageBytes * kPageBytes;
        Translation out;
        if (page < FlatMemory::kBase || page - FlatMemory::kBase >= bytes.size()) {
            out.fault = {softgpu::mem::FaultKind::NotPresent, access, va};
            return out;
        }
        out.host = bytes.data() + (page - FlatMemory::kBase);
        out.access = static_cast<std::uint8_t>(Access::Execute) |
                     static_cast<std::uint8_t>(Access::Read) |
                     static_cast<std::uint8_t>(Access::Write);
        return out;
    }
    bool read_indirect(GpuVa, std::span<std::byte>) override { return false; }
    bool write_indirect(GpuVa, std::span<const std::byte>) override { return false; }

private:
    FlatMemory& memory_;
};

constexpr std::uint32_t kKiqPipe = 1;
constexpr std::uint32_t kHiqPipe = 0;
constexpr std::uint32_t kKernelRingDwords = 2048;
constexpr std::uint32_t kControlStackBytes = 4096;

std::uint32_t queue_size(std::uint64_t dwords) {
    return static_cast<std::uint32_t>(std::bit_width(dwords)) - 2;  // 2 << n dwords
}

std::uint32_t kernel_pq_control(std::uint64_t dwords) {
    return HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, queue_size(dwords)) |
           HW_PREP(CP_HQD_PQ_CONTROL, PRIV_STATE, 1) | HW_PREP(CP_HQD_PQ_CONTROL, KMD_QUEUE, 1);
}

}  // namespace

// --- memory and VF ------------------------------------------------------------------------------

std::unique_ptr<softgpu::mem::Port> FlatMemory::make_port() {
    return std::make_unique<ArenaPort>(*this, epoch_);
}

std::uint64_t FlatMemory::allocate(std::size_t bytes) {
    constexpr std::uint64_t kAlignment = 256;
    const std::uint64_t va = next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (next_ > kBase + bytes_.size()) throw std::runtime_error("FlatMemory is full");
    return va;
}

void FakeVf::set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) {
    roots[softgpu::raw(vmid)] = root;
    pasids[softgpu::raw(vmid)] = pasid;
}

std::uint16_t FakeVf::pasid_of(Vmid vmid) const {
    return pasids[softgpu::raw(vmid)];
}

void FakeVf::report_fault(Vmid vmid, const softgpu::mem::Fault& fault) {
    faults.emplace_back(vmid, fault);
}

bool FakeVf::map_sdma(softgpu::cp::SdmaEngine engine, const softgpu::sdma::MapRequest& queue) {
    const auto taken =
        std::count_if(sdma.begin(), sdma.end(), [&](const auto& q) { return q.first == engine; });
    if (taken == 2) return false;
    sdma.emplace_back(engine, queue);
    return true;
}

void FakeVf::unmap_sdma(softgpu::cp::SdmaEngine engine, DoorbellIndex doorbell) {
    std::erase_if(
        sdma, [&](const auto& q) { return q.first == engine && q.second.doorbell == doorbell; });
}

void FakeVf::work_arrived() {
    ++wakes;
    if (on_work) on_work();
}

std::size_t FakeVf::count(ih_source source) const {
    return static_cast<std::size_t>(
        std::count_if(interrupts.begin(), interrupts.end(),
                      [&](const ih_iv_entry& entry) { return entry.source_id == source; }));
}

// --- packets ------------------------------------------------------------------------------------

Words pm4(pm4_opcode opcode, std::initializer_list<std::uint32_t> body) {
    Words out{PM4_HEADER_OF(opcode, static_cast<std::uint32_t>(body.size()))};
    out.insert(out.end(), body);
    return out;
}

Words operator+(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Words write_data(std::uint64_t va, std::uint32_t value) {
    return pm4(PM4_OP_WRITE_DATA,
               {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), lo(va), hi(va), value});
}

// --- rig ----------------------------------------------------------------------------------------

CpRig::CpRig(const Options& options)
    : memory(options.memory_bytes),
      vf(memory),
      cp({.compute_units = options.compute_units,
          .workers = options.workers,
          .code = code_memory_of_run(),
          .hot_runs = 0},
         registers, vf, clock) {}

std::uint32_t CpRig::read(hw_reg which) {
    return registers.read(RegisterIndex{static_cast<std::uint32_t>(which)});
}

void CpRig::write(hw_reg which, std::uint32_t value) {
    registers.write(RegisterIndex{static_cast<std::uint32_t>(which)}, value);
}

Ring CpRig::make_ring(std::uint32_t dwords, DoorbellIndex doorbell) {
    Ring ring;
    ring.va = memory.allocate(std::size_t{dwords} * 4);
    ring.dwords = dwords;
    ring.doorbell = doorbell;
    ring.mqd = memory.allocate(4096 + kControlStackBytes);
    return ring;
}

void CpRig::start_kiq() {
    kiq = make_ring(kKernelRingDwords, DoorbellIndex{DOORBELL_KIQ});
    kiq.report = memory.allocate(8);
    write(REG_GC_GRBM_GFX_CNTL,
          HW_PREP(GRBM_GFX_CNTL, ME, 2) | HW_PREP(GRBM_GFX_CNTL, PIPE, kKiqPipe));
    write(REG_GC_CP_HQD_PQ_BASE, lo(kiq.va >> 8));
    write(REG_GC_CP_HQD_PQ_BASE_HI, hi(kiq.va >> 8));
    write(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR, lo(kiq.report));
    write(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR_HI, hi(kiq.report));
    write(REG_GC_CP_HQD_PQ_CONTROL, kernel_pq_control(kiq.dwords));
    write(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL,
          HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, DOORBELL_KIQ) |
              HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, EN, 1));
    write(REG_GC_CP_HQD_ACTIVE, 1);
}

void CpRig::put_mqd(const Ring& ring, hw_reg which, std::uint32_t value) {
    memory.put(ring.mqd + std::uint64_t{MQD_DWORD_OF(which)} * 4, value);
}

void CpRig::fill_mqd(const Ring& ring, std::uint32_t pq_control, std::size_t save_bytes) {
    memory.put(ring.mqd, std::uint32_t{MQD_HEADER_VALUE});
    put_mqd(ring, REG_GC_CP_HQD_PQ_BASE, lo(ring.va >> 8));
    put_mqd(ring, REG_GC_CP_HQD_PQ_BASE_HI, hi(ring.va >> 8));
    put_mqd(ring, REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR, lo(ring.report));
    put_mqd(ring, REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR_HI, hi(ring.report));
    put_mqd(ring, REG_GC_CP_HQD_PQ_CONTROL, pq_control);
    if (save_bytes == 0) return;
    put_mqd(ring, REG_GC_CP_HQD_PERSISTENT_STATE,
            HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
    put_mqd(ring, REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO, lo(ring.save_area));
    put_mqd(ring, REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_HI, hi(ring.save_area));
    put_mqd(ring, REG_GC_CP_HQD_CTX_SAVE_SIZE, static_cast<std::uint32_t>(save_bytes));
    put_mqd(ring, REG_GC_CP_HQD_CNTL_STACK_SIZE, kControlStackBytes);
    put_mqd(ring, REG_GC_CP_HQD_CNTL_STACK_OFFSET, kControlStackBytes);
    put_mqd(ring, REG_GC_CP_HQD_WG_STATE_OFFSET, kControlStackBytes);
}

void CpRig::start_hiq(std::uint16_t vmid_mask, std::uint64_t queue_mask,
                      std::uint32_t latency_units) {
    hiq = make_ring(kKernelRingDwords, DoorbellIndex{DOORBELL_HIQ});
    hiq.report = memory.allocate(8);
    fill_mqd(hiq, kernel_pq_control(hiq.dwords), 0);
    submit(kiq,
           pm4(PM4_OP_MAP_QUEUES,
               {HW_PREP(MAP_QUEUES_1, ENGINE_SEL, PM4_ENGINE_HIQ) | HW_PREP(MAP_QUEUES_1, ME, 1) |
                    HW_PREP(MAP_QUEUES_1, PIPE, kHiqPipe) | HW_PREP(MAP_QUEUES_1, NUM_QUEUES, 1),
                HW_PREP(MAP_QUEUES_2, DOORBELL_OFFSET, DOORBELL_HIQ), lo(hiq.mqd), hi(hiq.mqd), 0,
                0}));
    pump();
    submit(hiq,
           pm4(PM4_OP_SET_RESOURCES, {HW_PREP(SET_RESOURCES_1, VMID_MASK, vmid_mask) |
                                          HW_PREP(SET_RESOURCES_1, UNMAP_LATENCY, latency_units) |
                                          HW_PREP(SET_RESOURCES_1, QUEUE_TYPE, 1),
                                      lo(queue_mask), hi(queue_mask), 0, 0, 0, 0}));
    pump();
}

void CpRig::start_gfx() {
    gfx = make_ring(kKernelRingDwords, DoorbellIndex{DOORBELL_GFX_RING0});
    gfx.report = memory.allocate(8);
    write(REG_GC_CP_RB0_CNTL, HW_PREP(CP_RB0_CNTL, RB_BUFSZ, queue_size(gfx.dwords)));
    write(REG_GC_CP_RB0_WPTR, 0);
    write(REG_GC_CP_RB0_WPTR_HI, 0);
    write(REG_GC_CP_RB0_RPTR_ADDR, lo(gfx.report));
    write(REG_GC_CP_RB0_RPTR_ADDR_HI, hi(gfx.report));
    write(REG_GC_CP_RB0_BASE, lo(gfx.va >> 8));
    write(REG_GC_CP_RB0_BASE_HI, hi(gfx.va >> 8));
    write(REG_GC_CP_RB_DOORBELL_CONTROL,
          HW_PREP(CP_RB_DOORBELL_CONTROL, OFFSET, DOORBELL_GFX_RING0) |
              HW_PREP(CP_RB_DOORBELL_CONTROL, ENABLE, 1));
}

void CpRig::submit(Ring& ring, const Words& words) {
    for (const std::uint32_t word : words) {
        memory.put(ring.va + ring.wptr % ring.dwords * 4, word);
        ++ring.wptr;
    }
    ring_doorbell(ring);
}

void CpRig::ring_doorbell(const Ring& ring) {
    const bool is_aql = ring.queue != 0;
    if (ring.wptr_poll != 0) memory.put(ring.wptr_poll, ring.wptr);
    cp.doorbell(ring.doorbell, is_aql ? ring.wptr - 1 : ring.wptr,
                softgpu::cp::DoorbellWidth::Qword);
}

// --- user queues --------------------------------------------------------------------------------

void CpRig::set_mqd(const Ring& ring, std::uint32_t dword, std::uint32_t value) {
    memory.put(ring.mqd + std::uint64_t{dword} * 4, value);
}

Ring CpRig::make_aql_queue(std::uint32_t packets, std::size_t save_bytes) {
    Ring ring = make_ring(packets * AQL_PACKET_BYTES / 4, DoorbellIndex{next_doorbell_});
    next_doorbell_ += 2;
    ring.queue = memory.allocate(sizeof(aql_queue));
    ring.report = ring.queue + offsetof(aql_queue, read_dispatch_id);
    ring.wptr_poll = ring.queue + offsetof(aql_queue, write_dispatch_id);
    ring.inactive_signal = make_signal(0, 0xee);
    memory.put(ring.queue + offsetof(aql_queue, queue_inactive_signal), ring.inactive_signal);
    if (save_bytes != 0) ring.save_area = memory.allocate(save_bytes);
    for (std::uint32_t i = 0; i < packets; ++i)
        memory.put(ring.va + std::uint64_t{i} * AQL_PACKET_BYTES, std::uint16_t{AQL_TYPE_INVALID});
    fill_mqd(ring, HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, queue_size(ring.dwords)), save_bytes);
    put_mqd(ring, REG_GC_CP_HQD_AQL_CONTROL, 1);
    return ring;
}

Ring CpRig::make_pm4_queue(std::uint32_t dwords, std::size_t save_bytes) {
    Ring ring = make_ring(dwords, DoorbellIndex{next_doorbell_});
    next_doorbell_ += 2;
    ring.report = memory.allocate(8);
    ring.wptr_poll = memory.allocate(8);
    if (save_bytes != 0) ring.save_area = memory.allocate(save_bytes);
    fill_mqd(ring, HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, queue_size(dwords)), save_bytes);
    return ring;
}

void CpRig::run_list(const std::vector<Process>& processes, Chain chain) {
    Words ib;
    for (const Process& process : processes) {
        Words map = pm4(PM4_OP_MAP_PROCESS, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
        map[1] = HW_PREP(MAP_PROCESS_1, PASID, process.pasid) |
                 HW_PREP(MAP_PROCESS_1, PROCESS_QUANTUM, process.quantum_ms) |
                 HW_PREP(MAP_PROCESS_1, DEBUG_VMID, process.debug_vmid) |
                 HW_PREP(MAP_PROCESS_1, NEW_DEBUG, process.debug_vmid != 0 ? 1 : 0);
        map[2] = 0x1001;
        map[4] = 0x00010002;
        if (process.trap_base != 0) {
            map[6] = lo(process.trap_base >> 8);
            map[7] = hi(process.trap_base >> 8) | HW_PREP(MAP_PROCESS_7, TRAP_EN, 1);
            map[8] = lo(process.trap_memory >> 8);
            map[9] = hi(process.trap_memory >> 8);
        }
        map[13] = HW_PREP(MAP_PROCESS_13, NUM_GWS, process.wave_syncs);
        ib = std::move(ib) + map;
        for (const Ring* ring : process.queues)
            ib = std::move(ib) +
                 pm4(PM4_OP_MAP_QUEUES,
                     {HW_PREP(MAP_QUEUES_1, QUEUE_SEL, 1) | HW_PREP(MAP_QUEUES_1, NUM_QUEUES, 1),
                      HW_PREP(MAP_QUEUES_2, DOORBELL_OFFSET, softgpu::raw(ring->doorbell)),
                      lo(ring->mqd), hi(ring->mqd), lo(ring->wptr_poll), hi(ring->wptr_poll)});
    }
    const std::uint64_t va = memory.allocate((ib.size() + 4) * 4);
    auto size = static_cast<std::uint32_t>(ib.size());
    if (chain == Chain::Yes) {
        size += 4;
        ib =
            std::move(ib) +
            pm4(PM4_OP_RUN_LIST,
                {lo(va), hi(va),
                 HW_PREP(RUN_LIST_3, IB_SIZE, size) | HW_PREP(RUN_LIST_3, CHAIN, 1) |
                     HW_PREP(RUN_LIST_3, CHAINED_IDLE_DISABLE, 1) | HW_PREP(RUN_LIST_3, VALID, 1)});
    }
    std::ranges::copy(std::as_bytes(std::span(ib)), memory.at(va, ib.size() * 4).begin());
    submit(hiq, pm4(PM4_OP_RUN_LIST,
                    {lo(va), hi(va),
                     HW_PREP(RUN_LIST_3, IB_SIZE, size) | HW_PREP(RUN_LIST_3, VALID, 1)}));
}

std::uint64_t CpRig::unmap_all(pm4_unmap_action action) {
    const std::uint64_t fence = memory.allocate(8);
    submit(hiq,
           pm4(PM4_OP_UNMAP_QUEUES, {HW_PREP(UNMAP_QUEUES_1, QUEUE_SEL, PM4_UNMAP_ALL_NON_STATIC) |
                                         HW_PREP(UNMAP_QUEUES_1, ACTION, action),
                                     0, 0, 0, 0}) +
               pm4(PM4_OP_QUERY_STATUS,
                   {HW_PREP(QUERY_STATUS_1, COMMAND, 2), 0, lo(fence), hi(fence), kFenceDone, 0}));
    return fence;
}

std::uint64_t CpRig::make_signal(std::int64_t value, std::uint32_t event) {
    const std::uint64_t va = memory.allocate(sizeof(aql_signal));
    aql_signal signal{};
    signal.kind = 1;
    signal.value = value;
    if (event != 0) {
        signal.event_mailbox_ptr = memory.allocate(8);
        signal.event_id = event;
    }
    memory.put(va, signal);
    return va;
}

std::int64_t CpRig::signal_value(std::uint64_t signal) {
    return memory.get<std::int64_t>(signal + offsetof(aql_signal, value));
}

void CpRig::put_packet(Ring& ring, std::span<const std::byte> packet) {
    const std::uint64_t packets = ring.dwords * 4 / AQL_PACKET_BYTES;
    std::ranges::copy(
        packet, memory.at(ring.va + ring.wptr % packets * AQL_PACKET_BYTES, packet.size()).begin());
    ++ring.wptr;
    memory.put(ring.wptr_poll, ring.wptr);
}

void CpRig::dispatch(Ring& ring, const AqlKernel& kernel) {
    aql_kernel_dispatch packet{};
    packet.header =
        static_cast<std::uint16_t>(HW_PREP(AQL_HEADER, TYPE, AQL_TYPE_KERNEL_DISPATCH) |
                                   HW_PREP(AQL_HEADER, BARRIER, kernel.has_barrier ? 1 : 0));
    packet.setup = static_cast<std::uint16_t>(HW_PREP(AQL_SETUP, DIMENSIONS, kernel.dimensions));
    packet.workgroup_size_x = kernel.group[0];
    packet.workgroup_size_y = kernel.group[1];
    packet.workgroup_size_z = kernel.group[2];
    packet.grid_size_x = kernel.grid[0];
    packet.grid_size_y = kernel.grid[1];
    packet.grid_size_z = kernel.grid[2];
    packet.group_segment_size = kernel.group_bytes;
    packet.private_segment_size = kernel.private_bytes;
    packet.kernel_object = kernel.object;
    packet.kernarg_address = kernel.arguments;
    packet.completion_signal = kernel.signal;
    put_packet(ring, softgpu::bytes_of(packet));
}

void CpRig::barrier(Ring& ring, aql_type type, std::initializer_list<std::uint64_t> signals,
                    std::uint64_t completion) {
    aql_barrier packet{};
    packet.header = static_cast<std::uint16_t>(HW_PREP(AQL_HEADER, TYPE, type));
    std::copy(signals.begin(), signals.end(), std::begin(packet.dep_signal));
    packet.completion_signal = completion;
    put_packet(ring, softgpu::bytes_of(packet));
}

void CpRig::vendor_ib(Ring& ring, const Words& ib, std::uint64_t completion) {
    const std::uint64_t va = memory.upload(ib);
    aql_pm4_ib packet{};
    packet.header = AQL_TYPE_VENDOR;
    packet.format = AQL_VENDOR_PM4_IB;
    packet.ib_packet[0] = PM4_HEADER_OF(PM4_OP_INDIRECT_BUFFER, 3);
    packet.ib_packet[1] = lo(va);
    packet.ib_packet[2] = hi(va);
    packet.ib_packet[3] = static_cast<std::uint32_t>(ib.size());
    packet.dword_count_remain = 0xa;
    packet.completion_signal = completion;
    put_packet(ring, softgpu::bytes_of(packet));
}

KernelCode CpRig::load_kernel(const std::string& name, int level) {
    const auto object = CodeObject::open(std::string(VGPU_KERNEL_DIR) + "/" + name + ".O" +
                                         std::to_string(level) + ".co");
    if (!object) throw std::runtime_error(object.error().message);
    const auto kernel = object->kernel(name);
    if (!kernel) throw std::runtime_error(kernel.error().message);
    const std::uint64_t raw_base = memory.allocate(object->image().size() + 4096);
    const std::uint64_t base = (raw_base + 4095) / 4096 * 4096;
    std::ranges::copy(object->image(), memory.at(base, object->image().size()).begin());
    return {base + kernel->offset, kernel->group_bytes, kernel->private_bytes};
}

std::uint64_t CpRig::load_trap_handler(const std::string& name) {
    const KernelCode code = load_kernel(name);
    const auto descriptor = memory.get<aql_kernel_descriptor>(code.descriptor);
    return code.descriptor + static_cast<std::uint64_t>(descriptor.kernel_code_entry_byte_offset);
}

KernelCode CpRig::load_words(const Words& words) {
    constexpr std::uint32_t kVgprBlocks = 3;
    constexpr std::uint32_t kFloatMode = 0xf0;
    const std::uint64_t va = memory.allocate(256 + words.size() * 4);
    aql_kernel_descriptor descriptor{};
    descriptor.kernel_code_entry_byte_offset = 256;
    descriptor.compute_pgm_rsrc1 = HW_PREP(COMPUTE_PGM_RSRC1, VGPRS, kVgprBlocks) |
                                   HW_PREP(COMPUTE_PGM_RSRC1, FLOAT_MODE, kFloatMode);
    descriptor.compute_pgm_rsrc2 =
        HW_PREP(COMPUTE_PGM_RSRC2, USER_SGPR, 2) | HW_PREP(COMPUTE_PGM_RSRC2, TGID_X_EN, 1);
    descriptor.kernel_code_properties =
        static_cast<std::uint16_t>(HW_PREP(KERNEL_CODE_PROPERTIES, KERNARG_SEGMENT_PTR, 1));
    memory.put(va, descriptor);
    std::ranges::copy(std::as_bytes(std::span(words)),
                      memory.at(va + 256, words.size() * 4).begin());
    return {va, 0, 0};
}

// --- execution ----------------------------------------------------------------------------------

namespace {
struct Sink final : softgpu::isa::MessageSink {
    void interrupt(std::uint32_t payload) override { payloads.emplace_back(payload); }
    void interrupt_from(const softgpu::isa::WaveState& sender, std::uint32_t payload) override {
        payloads.emplace_back(sender, payload);
    }
    softgpu::cp::Messages payloads;
};
}  // namespace

bool CpRig::pump_once(std::uint64_t budget) {
    const bool has_moved = cp.step() == StepResult::Progress;
    stop_ = false;
    const auto lease = cp.take_group(0, stop_);
    if (!lease) return has_moved;
    Sink sink;
    softgpu::isa::RunContext context{*lease->port, *lease->cache, clock,           sink,
                                     stop_,        budget,        lease->apertures};
    context.trap = lease->trap;
    context.wave_sync = lease->wave_sync;
    context.watches = lease->watches;
    context.vmid = lease->vmid;
    const softgpu::isa::RunResult result = softgpu::isa::run(*lease->group, context);
    cp.release(*lease, result, sink.payloads);
    return true;
}

void CpRig::pump(std::uint64_t budget) {
    constexpr int kRounds = 200'000;
    for (int i = 0; i < kRounds; ++i)
        if (!pump_once(budget)) return;
    throw std::runtime_error("CpRig: still busy");
}

void CpRig::pump_turns(unsigned turns, std::uint64_t budget) {
    for (unsigned i = 0; i < turns; ++i)
        if (!pump_once(budget)) return;
}

}  // namespace vgpu::test
