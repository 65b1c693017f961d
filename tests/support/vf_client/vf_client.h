// SPDX-License-Identifier: MIT
//
// VfClient: a minimal user-space driver of one VF, the guest of the scenario tests and of the demo.
// boot() does what a stock amdgpu VF driver does, in its order (docs/testing.md): detection,
// mailbox handshake, VBIOS and PF2VF, GMC and GART, PSP, interrupt rings, KIQ, gfx ring, compute
// rings, SDMA, HIQ, release of full access, IB tests. Afterwards create_process() gives an address
// space with AQL and SDMA queues, scheduled by run lists on the HIQ.
//
//   VfClient vf(socket);
//   vf.boot();
//   auto& process = vf.create_process();
//   auto& queue = process.create_queue();
//   auto kernel = process.load("matmul.co", "matmul");
//   auto done = process.create_signal();
//   queue.dispatch(kernel, {.grid = {64}, .group = {64}}, args(a.address, b.address), done);
//   process.wait(done);
//
// Errors are VfError exceptions. One thread uses a VfClient and everything it made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pf-driver/hw/pf2vf.h"
#include "tests/support/vf_client/device.h"
#include "tests/support/vf_client/gart.h"
#include "tests/support/vf_client/ih_ring.h"
#include "tests/support/vf_client/mailbox.h"
#include "tests/support/vf_client/psp_ring.h"
#include "tests/support/vf_client/ring.h"

namespace vgpu::test {

class Process;

struct VfClientOptions {
    std::uint64_t ram_bytes = 64u << 20;
    Sealing sealing = Sealing::Sealed;
};

class VfClient {
public:
    explicit VfClient(const std::string& socket_path, VfClientOptions options = {});
    ~VfClient();
    VfClient(const VfClient&) = delete;
    VfClient& operator=(const VfClient&) = delete;

    /// The whole init sequence; throws at the first step that does not go as on hardware.
    void boot();
    /// REQ_FINI, queues off, rings off, PSP ring destroyed, REL_FINI.
    void unload();
    /// Drops the rings and processes, for use after a reset of the VF. boot() may follow.
    void forget();
    /// Steps of boot(), for tests of the mailbox alone.
    void detect();
    void request_full_access();
    void release_full_access();
    /// VBIOS and PF2VF as boot() checks them.
    void read_vbios();
    void read_pf2vf();

    [[nodiscard]] VfDevice& device() { return device_; }
    [[nodiscard]] Mailbox& mailbox() { return mailbox_; }
    [[nodiscard]] GuestMemory& ram() { return ram_; }
    [[nodiscard]] VramHeap& vram() { return *vram_; }
    [[nodiscard]] Gart& gart() { return *gart_; }
    [[nodiscard]] PspRing& psp() { return *psp_; }
    [[nodiscard]] IhRing& ih() { return *ih_; }
    [[nodiscard]] Ring& kiq() { return *kiq_; }
    [[nodiscard]] Ring& gfx() { return *gfx_; }
    [[nodiscard]] Ring& compute(unsigned index) { return *compute_.at(index); }
    [[nodiscard]] Ring& sdma(unsigned engine) { return *sdma_.at(engine); }
    [[nodiscard]] Ring& hiq() { return *hiq_; }
    [[nodiscard]] const pf2vf_message& pf2vf() const { return pf2vf_; }
    [[nodiscard]] std::uint64_t vram_bytes() const { return vram_bytes_; }
    /// Compute units that the harvest registers leave.
    [[nodiscard]] unsigned cu_count() const { return cu_count_; }

    /// Register access at run time: packets on the KIQ.
    [[nodiscard]] std::uint32_t kiq_read(std::uint32_t reg);
    void kiq_write(std::uint32_t reg, std::uint32_t value);
    /// TLB flush of VMIDs on both hubs by KIQ packets, as at run time.
    void flush_tlb(std::uint32_t vmid_mask);

    Process& create_process();
    void destroy_process(Process& process);
    /// UNMAP_QUEUES, QUERY_STATUS, then a RUN_LIST of every process' queues.
    void update_run_list();
    /// UNMAP_QUEUES + QUERY_STATUS; false if the fence did not arrive within `limit`.
    [[nodiscard]] bool preempt_queues(milliseconds limit);

private:
    friend class Process;

    // boot, in order
    void read_identity();
    void read_sizes();
    void init_gmc();
    void init_psp();
    void init_gfx();
    void count_cus();
    void init_kiq();
    void stop_kiq();
    void init_gfx_ring();
    void map_compute_rings();
    void init_sdma();
    void init_sdma_engine(unsigned engine);
    void init_kfd();
    void run_ib_tests();

    void flush_tlb_by_mmio(std::uint32_t vmid_mask);
    void ring_test(Ring& ring);
    void ib_test(Ring& ring);
    void sdma_test(Ring& ring);
    Buffer make_kernel_mqd(const Ring& ring, std::uint32_t pq_control);
    void write_run_list();

    GuestMemory ram_;
    VfDevice device_;
    Mailbox mailbox_;
    pf2vf_message pf2vf_{};
    std::uint64_t vram_bytes_ = 0;
    unsigned cu_count_ = 0;
    std::unique_ptr<VramHeap> vram_;
    std::unique_ptr<Gart> gart_;
    std::unique_ptr<PspRing> psp_;
    std::unique_ptr<IhRing> ih_;
    std::unique_ptr<Ring> kiq_, gfx_, hiq_;
    std::vector<std::unique_ptr<Ring>> compute_, sdma_;
    Buffer run_list_;
    Buffer fence_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::uint16_t next_pasid_ = 0x8000;
};

}  // namespace vgpu::test
