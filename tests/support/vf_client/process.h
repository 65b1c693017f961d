// SPDX-License-Identifier: MIT
//
// Process: one GPU address space (PASID, page tables, doorbell page) with its queues, as KFD and
// ROCr set it up. It has buffers in system memory or VRAM, AQL queues with EOP buffer and context
// save area, SDMA queues, signals with interrupts, and code objects in VRAM.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/vf_client/aql_queue.h"
#include "tests/support/vf_client/packets.h"
#include "tests/support/vf_client/page_table.h"
#include "tests/support/vf_client/sdma_queue.h"
#include "tests/support/vf_client/signal.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::test {

class Process {
public:
    Process(VfClient& client, std::uint16_t pasid, unsigned doorbell_page);
    ~Process();

    /// Zeroed pages; VRAM of 2 MiB and more is mapped by huge pages.
    [[nodiscard]] Buffer allocate(std::uint64_t bytes, Place place = Place::System);
    /// Unmaps; the TLB flush comes before the next allocate() returns, so that nothing reuses an
    /// address or a page that the device still translates the old way.
    void free(const Buffer& buffer);

    [[nodiscard]] AqlQueue& create_queue(AqlQueueOptions options = {});
    void destroy_queue(AqlQueue& queue);
    [[nodiscard]] SdmaQueue& create_sdma_queue(unsigned engine);
    [[nodiscard]] Signal create_signal(std::int64_t value = 1);

    /// Copies the code object at `path` to VRAM and finds the kernel; throws if there is none.
    [[nodiscard]] Kernel load(const std::string& path, const std::string& name);

    /// Waits on the interrupt until signal <= 0. Throws on a memory fault of this process, on a
    /// queue error and after `limit` (scaled).
    void wait(const Signal& signal, milliseconds limit = milliseconds(20000));
    /// Like wait(), but returns false after `limit`.
    [[nodiscard]] bool try_wait(const Signal& signal, milliseconds limit);
    /// Waits for a memory fault of this process; removes its interrupt entry and returns it.
    IvEntry wait_fault(milliseconds limit = milliseconds(10000));
    /// Waits until `queue` reports an error; returns the error bits.
    std::uint64_t wait_queue_error(AqlQueue& queue, milliseconds limit = milliseconds(10000));

    /// Invalidates all translations of this process: INVALIDATE_TLBS by PASID on the KIQ.
    void flush_tlb();

    [[nodiscard]] VfClient& client() { return client_; }
    [[nodiscard]] PageTable& tables() { return *tables_; }
    [[nodiscard]] std::uint16_t pasid() const { return pasid_; }
    /// Grows when code is loaded: queues then invalidate the instruction cache.
    [[nodiscard]] std::uint64_t code_generation() const { return code_generation_; }

    // for VfClient
    [[nodiscard]] Dwords run_list_part() const;
    void drop_queues();

private:
    friend class AqlQueue;
    friend class SdmaQueue;

    [[nodiscard]] std::uint32_t next_doorbell();
    [[nodiscard]] bool is_fault(const IvEntry& entry) const;
    void check_for_condition();

    VfClient& client_;
    std::uint16_t pasid_;
    std::uint32_t doorbell_base_;
    std::uint32_t queues_made_ = 0;
    std::unique_ptr<PageTable> tables_;
    RangeAllocator addresses_;
    std::vector<Buffer> buffers_;
    Buffer events_;
    Buffer signals_;
    std::uint32_t next_event_ = 1;
    std::uint64_t code_generation_ = 0;
    bool has_stale_translations_ = false;
    bool is_dying_ = false;  // free() unmaps nothing: all page tables are freed together
    std::vector<std::unique_ptr<AqlQueue>> queues_;
    std::vector<std::unique_ptr<SdmaQueue>> sdma_queues_;
};

}  // namespace vgpu::test
