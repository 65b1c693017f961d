// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/aql_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/mqd.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/support/vf_client/mqd.h"
#include "tests/support/vf_client/process.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kVendorRemainingDwords = 0xa;
constexpr unsigned kScratchWavesPerCu = 32;
constexpr std::uint32_t kTmpringUnit = 1024;

std::uint32_t align_page(std::uint64_t bytes) {
    return static_cast<std::uint32_t>((bytes + kPage - 1) & ~(kPage - 1));
}

/// Sizes of the context save area, as KFD and the thunk compute them for gfx9.
std::uint32_t control_stack_bytes(unsigned cus) {
    const auto waves = std::min<std::uint64_t>(std::uint64_t{cus} * 40, 4 * 512);
    return align_page(40 + waves * 8 + 8);
}
std::uint32_t wave_data_bytes(unsigned cus) {
    return align_page(std::uint64_t{cus} * (0x40000 + 0x4000 + 0x10000 + 0x1000));
}

std::uint16_t header_of(std::uint32_t type) {
    return static_cast<std::uint16_t>(
        HW_PREP(AQL_HEADER, TYPE, type) | HW_PREP(AQL_HEADER, BARRIER, 1) |
        HW_PREP(AQL_HEADER, ACQUIRE_SCOPE, 2) | HW_PREP(AQL_HEADER, RELEASE_SCOPE, 2));
}

template <typename T> AqlPacket as_packet(const T& layout) {
    static_assert(sizeof(T) == sizeof(AqlPacket));
    AqlPacket packet;
    std::memcpy(packet.data(), &layout, sizeof packet);
    return packet;
}

}  // namespace

AqlQueue::AqlQueue(Process& process, std::uint32_t doorbell, AqlQueueOptions options)
    : process_(process),
      doorbell_(doorbell),
      packets_(options.packets),
      inactive_(process.create_signal(0)) {
    auto& client = process.client();
    const auto stack = control_stack_bytes(client.cu_count());
    make_memory(stack, stack + wave_data_bytes(client.cu_count()));
    const auto at = [this](std::size_t offset) { return queue_.address + offset; };
    write_aql_mqd(mqd_, {.ring = ring_.address,
                         .packets = packets_,
                         .read_dispatch_id = at(offsetof(aql_queue, read_dispatch_id)),
                         .write_dispatch_id = at(offsetof(aql_queue, write_dispatch_id)),
                         .eop = eop_.address,
                         .save_area = save_.address,
                         .save_bytes = static_cast<std::uint32_t>(save_.size()),
                         .control_stack_bytes = stack,
                         .doorbell = doorbell_});
}

void AqlQueue::make_memory(std::uint32_t control_stack, std::uint32_t save_bytes) {
    ring_ = process_.allocate(std::uint64_t{packets_} * AQL_PACKET_BYTES);
    queue_ = process_.allocate(kPage);
    eop_ = process_.allocate(kPage, Place::Vram);
    save_ = process_.allocate(save_bytes);
    kernargs_ = process_.allocate(packets_ * kKernargSlot);
    mqd_ = process_.client().gart().allocate(kPage + control_stack);
    for (std::uint32_t i = 0; i < packets_; ++i)
        ring_.store<std::uint16_t>(std::uint64_t{i} * AQL_PACKET_BYTES, AQL_TYPE_INVALID);
    aql_queue queue{};
    queue.type = 1;
    queue.features = 1;
    queue.base_address = ring_.address;
    queue.size = packets_;
    queue.group_segment_aperture_base_hi = softgpu::high32(GPUVM_LDS_APERTURE);
    queue.private_segment_aperture_base_hi = softgpu::high32(2 * GPUVM_LDS_APERTURE);
    queue.read_dispatch_id_field_base_byte_offset = offsetof(aql_queue, read_dispatch_id);
    queue.queue_properties = AQL_QUEUE_IS_PTR64 | AQL_QUEUE_ENABLE_PROFILING;
    queue.queue_inactive_signal = inactive_.address();
    std::memcpy(queue_.cpu.data(), &queue, sizeof queue);
}

AqlQueue::~AqlQueue() {
    for (const auto& buffer : {ring_, queue_, eop_, save_, kernargs_}) process_.free(buffer);
    if (scratch_) process_.free(*scratch_);
    process_.client().gart().free(mqd_);
}

Dwords AqlQueue::map_packet() const {
    return pm4::map_queue_anywhere(
        {.doorbell = doorbell_,
         .mqd = mqd_.address,
         .wptr = queue_.address + offsetof(aql_queue, write_dispatch_id)});
}

std::uint64_t AqlQueue::read_index() const {
    return queue_.load<std::uint64_t>(offsetof(aql_queue, read_dispatch_id));
}

std::uint64_t AqlQueue::error() const {
    return static_cast<std::uint64_t>(inactive_.value());
}

void AqlQueue::dispatch(const Kernel& kernel, const Grid& grid, const KernelArgs& arguments,
                        const std::optional<Signal>& completion) {
    if (arguments.size() > kKernargSlot || kernel.kernarg_bytes > kKernargSlot)
        throw VfError("dispatch: more kernel arguments than a slot holds");
    if (seen_code_ != process_.code_generation()) invalidate_instruction_cache();
    const auto slot = kernargs_.part(write_index_ % packets_ * kKernargSlot, kKernargSlot);
    aql_kernel_dispatch packet{};
    packet.header = header_of(AQL_TYPE_KERNEL_DISPATCH);
    packet.setup = 3;
    packet.workgroup_size_x = grid.group[0];
    packet.workgroup_size_y = grid.group[1];
    packet.workgroup_size_z = grid.group[2];
    packet.grid_size_x = grid.grid[0];
    packet.grid_size_y = grid.grid[1];
    packet.grid_size_z = grid.grid[2];
    packet.private_segment_size = kernel.private_bytes;
    packet.group_segment_size = kernel.group_bytes + grid.dynamic_group_bytes;
    packet.kernel_object = kernel.descriptor;
    packet.kernarg_address = slot.address;
    packet.completion_signal = completion ? completion->address() : 0;
    // The packet that used this slot before must be finished before the arguments change.
    wait_for("AQL: room in the queue", milliseconds(20000),
             [&] { return write_index_ - read_index() < packets_; });
    std::ranges::fill(slot.cpu, std::byte{0});
    std::ranges::copy(arguments, slot.cpu.begin());
    submit(as_packet(packet));
}

void AqlQueue::barrier_and(std::span<const Signal> dependencies,
                           const std::optional<Signal>& completion) {
    aql_barrier packet{};
    packet.header = header_of(AQL_TYPE_BARRIER_AND);
    if (dependencies.size() > AQL_BARRIER_SIGNALS) throw VfError("barrier: at most 5 signals");
    for (std::size_t i = 0; i < dependencies.size(); ++i)
        packet.dep_signal[i] = dependencies[i].address();
    packet.completion_signal = completion ? completion->address() : 0;
    submit(as_packet(packet));
}

void AqlQueue::invalidate_instruction_cache() {
    seen_code_ = process_.code_generation();
    const auto slot = kernargs_.part(write_index_ % packets_ * kKernargSlot, kKernargSlot);
    const auto body = pm4::acquire_mem_instruction_cache();
    slot.fill_from(std::span<const std::uint32_t>(body));
    const auto ib = pm4::indirect_buffer(slot.address, static_cast<std::uint32_t>(body.size()), 0);
    aql_pm4_ib packet{};
    packet.header = header_of(AQL_TYPE_VENDOR);
    packet.format = AQL_VENDOR_PM4_IB;
    std::ranges::copy(ib, packet.ib_packet);
    packet.dword_count_remain = kVendorRemainingDwords;
    submit(as_packet(packet));
}

void AqlQueue::write(const AqlPacket& packet) {
    wait_for("AQL: room in the queue", milliseconds(20000),
             [&] { return write_index_ - read_index() < packets_; });
    const auto slot = ring_.part(write_index_ % packets_ * AQL_PACKET_BYTES, AQL_PACKET_BYTES);
    std::memcpy(slot.cpu.data() + 2, packet.data() + 2, packet.size() - 2);
    std::uint16_t header = 0;
    std::memcpy(&header, packet.data(), sizeof header);
    slot.store(0, header);
    ++write_index_;
    queue_.store(offsetof(aql_queue, write_dispatch_id), write_index_);
}

void AqlQueue::ring() {
    ring_with(write_index_ - 1);
}

void AqlQueue::ring_with(std::uint64_t value) {
    process_.client().device().doorbell(doorbell_, value);
}

void AqlQueue::submit(const AqlPacket& packet) {
    write(packet);
    ring();
}

void AqlQueue::serve_scratch() {
    if (error() != AQL_QUEUE_ERROR_SCRATCH) return;
    const auto at = read_index() % packets_ * AQL_PACKET_BYTES;
    const auto wanted =
        ring_.load<std::uint32_t>(at + offsetof(aql_kernel_dispatch, private_segment_size));
    give_scratch(wanted);
    ++scratch_requests_;
    inactive_.set(0);
}

void AqlQueue::give_scratch(std::uint32_t bytes_per_lane) {
    const auto waves = process_.client().cu_count() * kScratchWavesPerCu;
    const auto wave_bytes =
        (bytes_per_lane * AQL_WAVE_LANES + kTmpringUnit - 1) / kTmpringUnit * kTmpringUnit;
    if (scratch_) process_.free(*scratch_);
    scratch_ = process_.allocate(std::uint64_t{waves} * wave_bytes);
    // buffer descriptor: swizzled, 4-byte elements, stride of 64 lanes, lane id added
    constexpr std::uint32_t kSwizzle = 1u << 31;
    constexpr std::uint32_t kScratchWord3 =
        4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 4 << 15 | 1 << 19 | 3 << 21 | 1 << 23;
    const std::array<std::uint32_t, 4> descriptor{
        softgpu::low32(scratch_->address), softgpu::high32(scratch_->address) | kSwizzle,
        static_cast<std::uint32_t>(scratch_->size()), kScratchWord3};
    queue_.fill_from(std::span<const std::uint32_t>(descriptor),
                     offsetof(aql_queue, scratch_resource_descriptor));
    queue_.store(offsetof(aql_queue, compute_tmpring_size),
                 HW_PREP(COMPUTE_TMPRING_SIZE, WAVES, waves) |
                     HW_PREP(COMPUTE_TMPRING_SIZE, WAVESIZE, wave_bytes / kTmpringUnit));
    queue_.store(offsetof(aql_queue, scratch_backing_memory_location), scratch_->address);
    queue_.store(offsetof(aql_queue, scratch_backing_memory_byte_size), scratch_->size());
    queue_.store(offsetof(aql_queue, scratch_wave64_lane_byte_size), wave_bytes / AQL_WAVE_LANES);
}

}  // namespace vgpu::test
