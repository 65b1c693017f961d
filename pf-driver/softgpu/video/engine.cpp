// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/video/engine.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/mem/value.h"
#include "pf-driver/softgpu/video/init_table.h"

namespace vgpu::softgpu::video {

namespace {

constexpr std::uint32_t kDwordBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kDwordMask = kDwordBytes - 1;
constexpr Vmid kKernel{0};
constexpr RegisterIndex kHost{REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST};
constexpr RegisterIndex kResponse{REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP};

/// True if the ring has the properties that run_ring() needs and does not check; for load().
bool is_consistent(const Engine::Ring& ring) {
    const bool are_pointers_good =
        ring.dwords == 0 ? ring.is_on == 0
                         : ring.read_pointer < ring.dwords && ring.write_pointer < ring.dwords;
    return ring.dwords <= VIDEO_MAX_RING_DWORDS && are_pointers_good &&
           ring.wait.kind <= Engine::WaitKind::MoreData;
}

/// Checks the lengths of a job's commands (hw/video.h), up to the end of the job or to padding (a
/// length of 0); encodes nothing. Processes write jobs, so every dword may have any value. A length
/// below the minimum is refused, so the loop always ends.
bool is_good_job(std::span<const std::uint32_t> commands) {
    while (!commands.empty() && commands[0] != 0) {
        const std::uint32_t bytes = commands[0];
        const bool is_possible = bytes >= VIDEO_MIN_COMMAND_BYTES && bytes % kDwordBytes == 0;
        if (!is_possible || bytes / kDwordBytes > commands.size()) return false;
        commands = commands.subspan(bytes / kDwordBytes);
    }
    return true;
}

/// Number of dwords from the ring's read pointer to its write pointer.
std::uint32_t pending_dwords(const Engine::Ring& ring) {
    return (ring.write_pointer + ring.dwords - ring.read_pointer) % ring.dwords;
}

}  // namespace

Engine::Engine(regs::RegisterFile& regs, Hooks hooks) : regs_(regs), hooks_(std::move(hooks)) {
    claim_status(regs_);
    regs_.claim(kHost, 1, {}, [this](RegisterIndex, std::uint32_t request) {
        const mmsch_response response = initialise(request);
        if (response != MMSCH_RESPONSE_DONE) ++state_.bad_packets;
        regs_.set(kResponse, response);
    });
}

// ---- MMSCH

/// Copies the table before it checks the table, because the guest may change its memory at any
/// time.
mmsch_response Engine::initialise(std::uint32_t request) {
    if (!hooks_.is_gate_open()) return MMSCH_RESPONSE_REFUSED;
    const std::uint32_t dwords = regs_.get(RegisterIndex{REG_VCE_VCE_MMSCH_VF_CTX_SIZE});
    const std::uint32_t vmid = regs_.get(RegisterIndex{REG_VCE_VCE_MMSCH_VF_VMID});
    const bool is_known =
        request == MMSCH_HOST_INIT && HW_GET(VCE_MMSCH_VF_VMID, CTX_VMID, vmid) == raw(kKernel);
    if (!is_known || dwords < MMSCH_HEADER_DWORDS || dwords > MMSCH_MAX_TABLE_DWORDS)
        return MMSCH_RESPONSE_BAD_REQUEST;

    std::vector<std::uint32_t> table(dwords);
    const std::uint64_t address = join(regs_.get(RegisterIndex{REG_VCE_VCE_MMSCH_VF_CTX_ADDR_LO}),
                                       regs_.get(RegisterIndex{REG_VCE_VCE_MMSCH_VF_CTX_ADDR_HI})) &
                                  ~kDwordMask;
    mem::Port& memory = hooks_.port(kKernel);
    const bool is_read = memory.read(GpuVa{address}, std::as_writable_bytes(std::span(table)));
    memory.clear_fault();
    if (!is_read) return MMSCH_RESPONSE_BAD_MEMORY;

    const auto lists = find_lists(table);
    if (!lists) return MMSCH_RESPONSE_BAD_HEADER;
    mmsch_response response = MMSCH_RESPONSE_DONE;
    for (const Encoder encoder : kEncoders) {
        const CommandList list = (*lists)[static_cast<std::size_t>(encoder)];
        if (list.empty()) continue;
        const mmsch_response booted = boot(encoder, list);
        if (response == MMSCH_RESPONSE_DONE) response = booted;
    }
    return response;
}

/// The ring is off while its list runs, so a failed list leaves the ring off.
mmsch_response Engine::boot(Encoder encoder, std::span<const std::uint32_t> commands) {
    const EncoderRow& row = row_of(encoder);
    ring_of(encoder) = {};
    const mmsch_response response = run_list(row, commands, regs_);
    if (response != MMSCH_RESPONSE_DONE) return response;

    Ring started;
    started.is_on = 1;
    started.dwords = regs_.get(RegisterIndex{row.size});
    started.base =
        join(regs_.get(RegisterIndex{row.base_lo}), regs_.get(RegisterIndex{row.base_hi})) &
        ~kDwordMask;
    if (started.dwords == 0 || started.dwords > VIDEO_MAX_RING_DWORDS)
        return MMSCH_RESPONSE_BAD_RING;
    ring_of(encoder) = started;
    regs_.set(RegisterIndex{row.read_pointer}, 0);
    regs_.set(RegisterIndex{row.write_pointer}, 0);
    ++state_.ring_starts;
    return MMSCH_RESPONSE_DONE;
}

// ---- rings

bool Engine::doorbell(DoorbellIndex index, std::uint64_t value) {
    const auto rung = std::ranges::find_if(kEncoders, [&](Encoder encoder) {
        return row_of(encoder).doorbell == raw(index) && ring(encoder).is_on != 0;
    });
    if (rung == kEncoders.end()) return false;
    Ring& which = ring_of(*rung);
    which.write_pointer = low32(value) % which.dwords;
    regs_.set(RegisterIndex{row_of(*rung).write_pointer}, which.write_pointer);
    return true;
}

bool Engine::is_active(Encoder encoder) const {
    const Ring& which = ring(encoder);
    return which.is_on != 0 && which.is_halted == 0 && pending_dwords(which) != 0 &&
           runs_firmware(row_of(encoder), regs_);
}

bool Engine::is_wait_over(const Ring& ring) {
    switch (ring.wait.kind) {
        case WaitKind::None:
            return true;
        case WaitKind::Register:
            return (regs_.read(RegisterIndex{ring.wait.reg}) & ring.wait.mask) ==
                   ring.wait.reference;
        case WaitKind::MoreData:
            return ring.write_pointer != ring.wait.reference;
    }
    return true;
}

bool Engine::has_work() {
    return std::ranges::any_of(kEncoders, [this](Encoder encoder) {
        return is_active(encoder) && is_wait_over(ring(encoder));
    });
}

bool Engine::needs_polling() const {
    return std::ranges::any_of(kEncoders, [this](Encoder encoder) {
        return is_active(encoder) && ring(encoder).wait.kind == WaitKind::Register;
    });
}

StepResult Engine::step() {
    bool is_blocked = false;
    for (std::uint32_t i = 0; i < kEncoders.size(); ++i) {
        const std::uint32_t which = (state_.next_ring + i) % kEncoders.size();
        const Encoder encoder = kEncoders[which];
        if (!is_active(encoder)) continue;
        if (is_wait_over(ring(encoder)) && run_ring(encoder)) {
            state_.next_ring = (which + 1) % kEncoders.size();
            return StepResult::Progress;
        }
        is_blocked = is_blocked || ring(encoder).wait.kind == WaitKind::Register;
    }
    return is_blocked ? StepResult::Blocked : StepResult::Idle;
}

/// True if a packet has completed or the ring has halted. Returns after a job, because only jobs
/// can take long.
bool Engine::run_ring(Encoder encoder) {
    const std::uint64_t packets = state_.packets;
    const std::uint64_t jobs = state_.jobs;
    for (std::uint32_t i = 0; i < StepBudget{}.packets && is_active(encoder); ++i) {
        const Outcome outcome = run_packet(encoder);
        finish_packet(encoder, outcome);
        if (outcome != Outcome::Done || state_.jobs != jobs) break;
    }
    return packets != state_.packets || ring(encoder).is_halted != 0;
}

void Engine::finish_packet(Encoder encoder, Outcome outcome) {
    Ring& which = ring_of(encoder);
    switch (outcome) {
        case Outcome::Done:
            which.wait = {};
            ++state_.packets;
            break;
        case Outcome::Blocked:
            break;
        case Outcome::Starved:
            which.wait = {WaitKind::MoreData, 0, 0, which.write_pointer};
            break;
        case Outcome::Fault:
            report_fault(kKernel);
            which.is_halted = 1;
            break;
        case Outcome::Bad:
            ++state_.bad_packets;
            which.is_halted = 1;
            break;
    }
}

void Engine::report_fault(Vmid vmid) {
    mem::Port& memory = hooks_.port(vmid);
    mem::Fault fault = memory.fault();
    if (!memory.has_fault()) fault.kind = mem::FaultKind::OutOfRange;
    memory.clear_fault();
    ++state_.faults;
    hooks_.fault({mem::Hub::Mm, vmid, 0, fault});
}

bool Engine::fetch(const Ring& ring, std::span<std::uint32_t> out) {
    const std::size_t to_end = ring.dwords - ring.read_pointer;
    const auto head = out.first(std::min(out.size(), to_end));
    const auto rest = out.subspan(head.size());
    mem::Port& memory = hooks_.port(kKernel);
    const std::uint64_t at = ring.base + std::uint64_t{ring.read_pointer} * kDwordBytes;
    return memory.read(GpuVa{at}, std::as_writable_bytes(head)) &&
           memory.read(GpuVa{ring.base}, std::as_writable_bytes(rest));
}

void Engine::advance(Encoder encoder, std::uint32_t dwords) {
    Ring& which = ring_of(encoder);
    which.read_pointer = (which.read_pointer + dwords) % which.dwords;
    regs_.set(RegisterIndex{row_of(encoder).read_pointer}, which.read_pointer);
}

// ---- packets

struct Engine::PacketRow {
    std::uint32_t op;
    std::uint32_t dwords;
    Handler handler;
};

const Engine::PacketRow* Engine::find_row(std::uint32_t op) {
    static constexpr std::array kRows = {
#define VIDEO(name, op, dwords, action, doc) PacketRow{(op), (dwords), &Engine::action},
#include "pf-driver/hw/video.def"
#undef VIDEO
    };
    const auto row = std::ranges::find_if(kRows, [&](const PacketRow& r) { return r.op == op; });
    return row == kRows.end() ? nullptr : &*row;
}

/// Moves the read pointer past the packet before the packet acts, because a packet may write a
/// register that sets up this ring again. Moves the read pointer back if the packet waits or fails;
/// advance() by 0 only updates the register.
Engine::Outcome Engine::run_packet(Encoder encoder) {
    const Ring& which = ring(encoder);
    Packet packet{};
    if (!fetch(which, std::span(packet).first(1))) return Outcome::Fault;
    const PacketRow* row = find_row(packet[0]);
    if (row == nullptr) return Outcome::Bad;
    if (pending_dwords(which) < row->dwords) return Outcome::Starved;
    if (!fetch(which, std::span(packet).first(row->dwords))) return Outcome::Fault;
    const std::uint32_t start = which.read_pointer;
    advance(encoder, row->dwords);
    const Outcome outcome = (this->*row->handler)(encoder, packet);
    if (outcome != Outcome::Done) {
        ring_of(encoder).read_pointer = start;
        advance(encoder, 0);
    }
    return outcome;
}

Engine::Outcome Engine::pass(Encoder, const Packet&) {
    return Outcome::Done;
}

/// Writes the value in one access, after all earlier writes, because a guest CPU polls the value.
Engine::Outcome Engine::fence(Encoder, const Packet& packet) {
    const GpuVa address{join(packet[1], packet[2]) & ~kDwordMask};
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool is_written = mem::store_value(hooks_.port(kKernel), address, packet[3]);
    return is_written ? Outcome::Done : Outcome::Fault;
}

/// Leaves source data 0 of the entry at 0, the number of the encoder's only ring.
Engine::Outcome Engine::trap(Encoder encoder, const Packet&) {
    const EncoderRow& row = row_of(encoder);
    if (!has_interrupts(row, regs_)) return Outcome::Done;
    ih_iv_entry entry{};
    entry.client_id = static_cast<std::uint8_t>(row.client);
    entry.source_id = static_cast<std::uint8_t>(row.source);
    hooks_.raise(entry);
    return Outcome::Done;
}

/// A bad job affects only its process: the ring continues, so the kernel's fence after the job is
/// written.
Engine::Outcome Engine::indirect(Encoder, const Packet& packet) {
    const Vmid vmid{static_cast<std::uint8_t>(HW_GET(VIDEO_IB_VM_1, VMID, packet[1]))};
    if (raw(vmid) != packet[1]) return Outcome::Bad;
    ++state_.jobs;
    const bool is_size_good = packet[4] <= VIDEO_MAX_IB_DWORDS;
    std::vector<std::uint32_t> commands(is_size_good ? packet[4] : 0);
    const GpuVa address{join(packet[2], packet[3]) & ~kDwordMask};
    if (!hooks_.port(vmid).read(address, std::as_writable_bytes(std::span(commands))))
        report_fault(vmid);
    else if (!is_size_good || !is_good_job(commands))
        ++state_.bad_packets;
    return Outcome::Done;
}

Engine::Outcome Engine::write_register(Encoder, const Packet& packet) {
    regs_.write(RegisterIndex{packet[1] / kDwordBytes}, packet[2]);
    return Outcome::Done;
}

/// Checks the condition once. If the condition is false, step() and the poller check again.
Engine::Outcome Engine::wait_register(Encoder encoder, const Packet& packet) {
    Ring& which = ring_of(encoder);
    which.wait = {WaitKind::Register, packet[1] / kDwordBytes, packet[2], packet[3]};
    return is_wait_over(which) ? Outcome::Done : Outcome::Blocked;
}

// ---- block

Result<> Engine::load(Reader& in) {
    State state;
    Result<> read = in.value(state);
    if (read &&
        !(std::ranges::all_of(state.rings, is_consistent) && state.next_ring < kEncoders.size()))
        read = fail(EPROTO, "state stream holds an impossible encoder ring");
    state_ = read ? state : State{};
    return read;
}

}  // namespace vgpu::softgpu::video
