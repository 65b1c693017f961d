// SPDX-License-Identifier: MIT
//
// The PF's operations on a VF: GpuVf as an iov::VfControl.
#include <fmt/format.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/gpu_vf.h"

namespace vgpu::softgpu {

namespace {

/// RCC_CONFIG_MEMSIZE counts MiB (Linux 6.12, amdgpu/gmc_v9_0.c).
constexpr unsigned kMegabyteShift = 20;

/// The head of a state stream. load_state() refuses a stream with another magic or version.
struct StateHeader {
    std::uint64_t magic = 0;
    std::uint32_t version = 0;
    std::uint32_t reserved = 0;
    std::uint64_t bytes = 0;  ///< bytes after the header
};
constexpr std::uint64_t kStateMagic = 0x5441545355504756ull;  // "VGPUSTAT"
/// Increases with every change of any block's state, because streams do not describe their layout.
constexpr std::uint32_t kStateVersion = 6;

std::uint64_t now_ns(const Clock& clock) {
    return static_cast<std::uint64_t>(clock.now().count());
}

/// Undoes VfBlocks::add_to(), which adds to these four counters.
void subtract(iov::VfStatistics& sum, const iov::VfStatistics& part) {
    sum.wave_instructions -= part.wave_instructions;
    sum.illegal_instructions -= part.illegal_instructions;
    sum.bad_packets -= part.bad_packets;
    sum.faults -= part.faults;
}

}  // namespace

// --- VRAM ----------------------------------------------------------------------------------------

Result<> GpuVf::commit_vram(DeviceOffset root, Bytes size) {
    if (size > spec_.aperture) {
        vram_.release();
        update_for_new_vram();
        return fail(ENOSPC, fmt::format("{} MiB do not fit the aperture of {} MiB", size / 1_MiB,
                                        spec_.aperture / 1_MiB));
    }
    const Result<> committed = vram_.commit(root, size);
    update_for_new_vram();
    return committed;
}

/// If the VF had VRAM, disconnects the client, because the client may still map memory that no
/// longer belongs to the VF. A frozen VM does not disconnect by itself, and would still be attached
/// when the next owner comes.
void GpuVf::release_vram() {
    const bool had_vram = vram_.size().count > 0;
    vram_.release();
    update_for_new_vram();
    if (had_vram) device_.hang_up(function_);
}

void GpuVf::update_for_new_vram() {
    const auto lock = enter();
    update_vram_registers();
}

void GpuVf::update_vram_registers() {
    blocks_.registers.set(RegisterIndex{REG_NBIO_RCC_CONFIG_MEMSIZE},
                          low32(vram_.size().count >> kMegabyteShift));
    blocks_.gpuvm.vram_changed();
}

bool GpuVf::read_vram(VfOffset offset, std::span<std::byte> out) {
    return vram_.read(offset, out);
}

bool GpuVf::write_vram(VfOffset offset, std::span<const std::byte> data) {
    return vram_.write(offset, data);
}

// --- settings ------------------------------------------------------------------------------------

void GpuVf::set_doorbell_pages(std::uint32_t first, std::uint32_t count) {
    const auto lock = enter();
    doorbells_.set_pages(first, count);
}

void GpuVf::set_cu_mask(std::uint64_t mask) {
    const auto lock = enter();
    blocks_.shader_arrays.set_cu_mask(mask);
    blocks_.cp.set_compute_units(mask);
}

/// Until the PF has acknowledged a client's reset, a write of the PF may be an answer to a request
/// from before the reset, e.g. for full access. So DOORBELL_EN and REGWR_EN stay shut.
void GpuVf::set_gates(std::uint32_t gates) {
    write_gates(is_reset_unacknowledged_ ? gates & ~kClientGates : gates);
}

void GpuVf::write_gates(std::uint32_t gates) {
    const auto lock = enter();
    gates_ = gates;
    doorbells_.set_gate(HW_GET(VGPU_GATES, DOORBELL_EN, gates) != 0 ? regs::Gate::Open
                                                                    : regs::Gate::Shut);
}

/// Asynchronous, as an FLR is on hardware (PCIe 6.0, 6.6.2).
void GpuVf::request_flr() {
    device_.queue_flr(vf());
}

std::uint32_t GpuVf::reset_flags() const {
    return HW_PREP(VGPU_RESET, FLR, is_resetting_ ? 1 : 0) |
           HW_PREP(VGPU_RESET, FLR_PENDING, is_reset_unacknowledged_ ? 1 : 0);
}

/// SWITCH_STATE of a VF that is not in the engine is GPUIOV_FUNCTION_IDLE.
std::uint32_t GpuVf::status() {
    const iov::WorldSwitch::View view = world_switch_.view();
    const std::uint32_t state = view.function == vf() ? view.state : GPUIOV_FUNCTION_IDLE;
    const bool is_full_access = HW_GET(VGPU_GATES, REGWR_EN, gates_.load()) != 0;
    return HW_PREP(VGPU_STATUS, HAS_WORK, has_work() ? 1 : 0) |
           HW_PREP(VGPU_STATUS, ATTACHED, is_attached() ? 1 : 0) |
           HW_PREP(VGPU_STATUS, IN_FULL_ACCESS, is_full_access ? 1 : 0) |
           HW_PREP(VGPU_STATUS, SWITCH_STATE, state);
}

std::uint32_t GpuVf::mailbox_read(RegisterIndex index) {
    const auto lock = enter();
    return mailbox_.pf_read(index);
}

void GpuVf::mailbox_write(RegisterIndex index, std::uint32_t value) {
    const auto lock = enter();
    mailbox_.pf_write(index, value);
}

iov::VfStatistics GpuVf::statistics() {
    const std::scoped_lock lock(lock_);
    return is_saved_ ? saved_statistics_ : statistics_locked();
}

iov::VfStatistics GpuVf::statistics_locked() const {
    iov::VfStatistics now = past_;
    blocks_.add_to(now);
    now.doorbells_latched = doorbells_.counters().latched;
    now.bad_accesses = bad_accesses_ + blocks_.registers.refused() + blocks_.rlcg.refused() +
                       doorbells_.counters().dropped;
    return now;
}

// --- state ---------------------------------------------------------------------------------------

/// Resets through the world switch, so that no command can load the VF during the reset.
Result<> GpuVf::scrub_state() {
    world_switch_.reset(vf(), [this] {
        reset_blocks(ResetScope::NewOwner);
        renew_doorbells();
    });
    return {};
}

Result<std::vector<std::byte>> GpuVf::save_state() {
    std::vector<std::byte> state;
    if (!world_switch_.with_parked(vf(), [&] { state = save_stream(); }))
        return fail(EBUSY, "the VF is running; IDLE it first");
    std::vector<std::byte> stream;
    Writer out(stream);
    out.value(StateHeader{kStateMagic, kStateVersion, 0, state.size()});
    out.bytes(state);
    return stream;
}

/// Checks the header before it touches the VF.
Result<> GpuVf::load_state(std::span<const std::byte> stream) {
    StateHeader header;
    Reader in(stream);
    TRY_VOID(in.value(header));
    if (header.magic != kStateMagic || header.version != kStateVersion)
        return fail(EPROTO, "this is not a state stream of this version");
    if (header.bytes > in.remaining()) return fail(EPROTO, "the state stream is truncated");
    Result<> loaded;
    const auto load = [&] {
        loaded = load_stream(stream.subspan(sizeof(header), header.bytes));
        device_.find_work(vf());
    };
    if (!world_switch_.with_parked(vf(), load))
        return fail(EBUSY, "the VF is running; IDLE it first");
    return loaded;
}

std::vector<std::byte> GpuVf::save_stream() {
    const auto lock = enter();
    blocks_.cp.end_wait();  // so that the saved time limits do not include the wait so far
    (void)has_work_locked();
    blocks_.drain();
    // The VF's own engines may have posted doorbell writes. deactivate() moves these writes to the
    // latch, so that doorbells_.save() includes them.
    doorbells_.deactivate();
    std::vector<std::byte> stream;
    Writer out(stream);
    out.value(now_ns(clock_));
    blocks_.save(out);
    mailbox_.save(out);
    doorbells_.save(out);
    return stream;
}

/// The time limits in the stream are times of the clock of the device that saved it. So they move
/// by the time since the save, as if the VF had waited for the engine meanwhile.
///
/// A stream with any error leaves the VF reset, never half loaded. The VF's counters stay: the
/// counts in the stream are not those of this VF, and may have any value. So past_ may be
/// "negative", but its sum with the counts of the blocks is right, because both wrap.
Result<> GpuVf::load_stream(std::span<const std::byte> stream) {
    const auto lock = enter();
    Reader in(stream);
    blocks_.add_to(past_);
    blocks_.cp.end_wait();
    std::uint64_t saved_at = 0;
    Result<> loaded = in.value(saved_at);
    if (loaded) loaded = blocks_.load(in);
    blocks_.cp.postpone_time_limits(now_ns(clock_) - saved_at);
    iov::VfStatistics counts_of_stream;
    blocks_.add_to(counts_of_stream);
    subtract(past_, counts_of_stream);
    if (loaded) loaded = mailbox_.load(in);
    if (loaded) loaded = doorbells_.load(in);
    if (loaded && in.remaining() != 0) loaded = fail(EPROTO, "the state stream is too long");
    if (!loaded) reset_locked(ResetScope::NewOwner);
    update_vram_registers();
    return loaded;
}

void GpuVf::renew_doorbells() {
    const std::scoped_lock lock(lock_);
    const Result<> renewed = doorbells_.renew();
    if (!renewed) log::error("VF{}: {}; no client can map it", raw(vf()), renewed.error().message);
}

}  // namespace vgpu::softgpu
