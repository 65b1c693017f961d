// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/process.h"

#include <fmt/format.h>

#include <algorithm>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/pm4.h"
#include "tests/support/code_object.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2u << 20;
constexpr std::uint64_t kFirstVa = 0x7000'0000'0000;
constexpr std::uint64_t kEndVa = 0x7fff'0000'0000;
constexpr std::uint64_t kEventPageBytes = 32768;
constexpr std::uint64_t kSignalPageBytes = 1u << 17;
constexpr std::uint32_t kUserShMemConfig = 0x1018;
constexpr std::uint32_t kUserShMemBases = 0x00010002;
constexpr std::uint64_t kNoEvent = ~0ull;
constexpr milliseconds kConditionCheck{200};

}  // namespace

Process::Process(VfClient& client, std::uint16_t pasid, unsigned doorbell_page)
    : client_(client),
      pasid_(pasid),
      doorbell_base_(DOORBELL_PROCESS_FIRST + doorbell_page * DOORBELL_PROCESS_DWORDS),
      tables_(std::make_unique<PageTable>(client.vram())),
      addresses_("process addresses", kFirstVa, kEndVa) {
    events_ = allocate(kEventPageBytes);
    signals_ = allocate(kSignalPageBytes);
    std::ranges::fill(events_.cpu, std::byte{0xff});
}

Process::~Process() {
    is_dying_ = true;
    drop_queues();
    while (!buffers_.empty()) free(Buffer(buffers_.back()));
}

Buffer Process::allocate(std::uint64_t bytes, Place place) {
    const auto size = (bytes + kPage - 1) & ~(kPage - 1);
    const bool is_huge = place == Place::Vram && size % kHugePage == 0;
    const auto align = is_huge ? kHugePage : kPage;
    Buffer buffer;
    buffer.place = place;
    if (place == Place::Vram) {
        const auto pages = client_.vram().allocate(size, align);
        buffer.backing = pages.backing;
        buffer.cpu = pages.cpu;
    } else {
        buffer.backing = client_.ram().allocate(size);
        buffer.cpu = client_.ram().at(buffer.backing, size);
    }
    buffer.address = addresses_.allocate(size, align);
    if (is_huge) {
        for (std::uint64_t done = 0; done < size; done += kHugePage)
            tables_->map_huge(buffer.address + done, buffer.backing + done);
    } else {
        tables_->map(buffer.address, buffer.backing, size,
                     place == Place::Vram ? PageTable::kVramFlags : PageTable::kSystemFlags);
    }
    buffers_.push_back(buffer);
    // a TLB may still hold the translation of an address that was in use before
    if (has_stale_translations_) flush_tlb();
    has_stale_translations_ = false;
    return buffer;
}

void Process::free(const Buffer& buffer) {
    const auto found = std::ranges::find(buffers_, buffer.address, &Buffer::address);
    if (found == buffers_.end()) throw VfError("free: not a buffer of this process");
    const auto freed = *found;
    buffers_.erase(found);
    if (!is_dying_) tables_->unmap(freed.address, freed.size());
    has_stale_translations_ = true;
    addresses_.free(freed.address);
    if (freed.place == Place::Vram)
        client_.vram().free(freed);
    else
        client_.ram().free(freed.backing);
}

Signal Process::create_signal(std::int64_t value) {
    const auto id = next_event_++;
    if (std::uint64_t{id + 1} * sizeof(aql_signal) > signals_.size() ||
        std::uint64_t{id + 1} * 8 > events_.size())
        throw VfError("signals: the process has used up its event slots");
    aql_signal signal{};
    signal.kind = 1;
    signal.value = value;
    signal.event_mailbox_ptr = events_.address + std::uint64_t{id} * 8;
    signal.event_id = id;
    const auto memory = signals_.part(std::uint64_t{id} * sizeof signal, sizeof signal);
    std::memcpy(memory.cpu.data(), &signal, sizeof signal);
    events_.store<std::uint64_t>(std::uint64_t{id} * 8, kNoEvent);
    return {memory, id};
}

std::uint32_t Process::next_doorbell() {
    if (queues_made_ * 2 >= DOORBELL_PROCESS_SDMA0)
        throw VfError("queues: the process' doorbell page is used up");
    return doorbell_base_ + 2 * queues_made_++;
}

AqlQueue& Process::create_queue(AqlQueueOptions options) {
    queues_.push_back(std::make_unique<AqlQueue>(*this, next_doorbell(), options));
    client_.update_run_list();
    return *queues_.back();
}

void Process::destroy_queue(AqlQueue& queue) {
    const auto found = std::ranges::find_if(
        queues_, [&](const auto& candidate) { return candidate.get() == &queue; });
    if (found == queues_.end()) throw VfError("destroy_queue: not a queue of this process");
    auto keep_alive = std::move(*found);
    queues_.erase(found);
    client_.update_run_list();
}

SdmaQueue& Process::create_sdma_queue(unsigned engine) {
    const auto in_page = engine == 0 ? DOORBELL_PROCESS_SDMA0 : DOORBELL_PROCESS_SDMA1;
    sdma_queues_.push_back(std::make_unique<SdmaQueue>(*this, engine, doorbell_base_ + in_page));
    client_.update_run_list();
    return *sdma_queues_.back();
}

void Process::drop_queues() {
    queues_.clear();
    sdma_queues_.clear();
}

Dwords Process::run_list_part() const {
    const auto count = static_cast<std::uint32_t>(queues_.size() + sdma_queues_.size());
    if (count == 0) return {};
    auto part = pm4::map_process({.pasid = pasid_,
                                  .page_directory = tables_->root(),
                                  .sh_mem_bases = kUserShMemBases,
                                  .sh_mem_config = kUserShMemConfig,
                                  .queues = count});
    for (const auto& queue : sdma_queues_) part += queue->map_packet();
    for (const auto& queue : queues_) part += queue->map_packet();
    return part;
}

Kernel Process::load(const std::string& path, const std::string& name) {
    const auto object = CodeObject::open(path);
    if (!object) throw VfError(object.error().message);
    const auto kernel = object->kernel(name);
    if (!kernel) throw VfError(path + ": " + kernel.error().message);
    const auto memory = allocate(object->image().size(), Place::Vram);
    std::ranges::copy(object->image(), memory.cpu.begin());
    client_.device().flush_hdp();
    ++code_generation_;
    return {memory.address + kernel->offset, kernel->kernarg_bytes, kernel->group_bytes,
            kernel->private_bytes};
}

bool Process::is_fault(const IvEntry& entry) const {
    // UTCL2 reports for the GFX hub, VMC for MMHUB, which SDMA uses
    const bool is_hub = entry.client_id == IH_CLIENT_UTCL2 || entry.client_id == IH_CLIENT_VMC;
    return is_hub && entry.source_id == IH_SOURCE_VM_FAULT && entry.pasid == pasid_;
}

void Process::check_for_condition() {
    for (const auto& entry : client_.ih().entries())
        if (is_fault(entry)) {
            const auto page = std::uint64_t{entry.source_data[0]} |
                              std::uint64_t{entry.source_data[1] & IH_FAULT_DATA1_VA_HI_MASK} << 32;
            throw VfError(fmt::format("memory fault at {:#x} (vmid {})", page << GPUVM_PAGE_SHIFT,
                                      entry.vmid & 0xf));
        }
    for (const auto& queue : queues_) {
        queue->serve_scratch();
        if (queue->error() > AQL_QUEUE_ERROR_SCRATCH)
            throw VfError(fmt::format("queue error {:#x}", queue->error()));
    }
}

bool Process::try_wait(const Signal& signal, milliseconds limit) {
    const Deadline deadline(limit);
    client_.ih().drain();
    while (signal.value() > 0) {
        check_for_condition();
        if (deadline.passed()) return false;
        client_.ih().wait_interrupt(deadline);
    }
    events_.store<std::uint64_t>(std::uint64_t{signal.event_id} * 8, kNoEvent);
    return true;
}

void Process::wait(const Signal& signal, milliseconds limit) {
    if (!try_wait(signal, limit))
        throw VfError(fmt::format("signal (event {}) is still {} after {} ms (scaled)",
                                  signal.event_id, signal.value(), limit.count()));
}

IvEntry Process::wait_fault(milliseconds limit) {
    return client_.ih().wait([this](const IvEntry& entry) { return is_fault(entry); }, limit);
}

std::uint64_t Process::wait_queue_error(AqlQueue& queue, milliseconds limit) {
    const Deadline deadline(limit);
    while (queue.error() <= AQL_QUEUE_ERROR_SCRATCH) {
        queue.serve_scratch();
        if (deadline.passed()) throw VfError("the queue reported no error");
        client_.ih().wait_interrupt(Deadline(kConditionCheck));
    }
    return queue.error();
}

void Process::flush_tlb() {
    client_.kiq().sync(pm4::invalidate_tlbs(pasid_));
}

}  // namespace vgpu::test
