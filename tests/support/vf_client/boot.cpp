// SPDX-License-Identifier: MIT
//
// The init sequence of VfClient, one function per step, in the order in which the device sees it
// from a stock driver.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/support/vf_client/mqd.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::test {
namespace {

using softgpu::high32;
using softgpu::low32;

// values of the stock driver
constexpr std::uint32_t kVmContextCntl = 0x00555407;     // depth 3, default pages, no interrupt
constexpr std::uint32_t kVmContextCntlIrq = 0x007ffe07;  // the same with interrupts
constexpr std::uint32_t kVmContext0CntlIrq = 0x002aaa01;
constexpr std::uint32_t kMxL1TlbCntl = 0x3859;
constexpr std::uint32_t kFaultCntl2 = 0x40000;
constexpr std::uint32_t kShMemBases = 0x60006000;
constexpr std::uint32_t kShMemConfig = 0x18;
constexpr std::uint32_t kBroadcastAll = 0xe0000000;
constexpr std::uint32_t kSdmaCntl = 0x00040003;
constexpr std::uint32_t kInvalidateAll = 0x007c0000;
constexpr unsigned kMmioFlushEngine = 17;
constexpr std::uint32_t kSmcFlags = 0x03b10028;
constexpr unsigned kShaderEngines = 4;
constexpr std::uint32_t kCusPerEngineMask = 0xffff;
constexpr milliseconds kRingTestLimit{2000};

constexpr HqdSelect kKiq{.me = 2, .pipe = 1, .queue = 0};

/// Where the registers of one GPUVM hub are.
struct Hub {
    std::uint32_t context_cntl, request, ack, range_lo, range_hi, base_lo, base_hi, start_lo,
        start_hi, end_lo, end_hi, agp_top, agp_bottom, agp_base, aperture_low, aperture_high,
        l1_tlb;
};
#define VGPU_TEST_HUB(block)                                                                  \
    {                                                                                         \
        REG_##block##_VM_CONTEXT0_CNTL, REG_##block##_VM_INVALIDATE_ENG0_REQ,                 \
            REG_##block##_VM_INVALIDATE_ENG0_ACK,                                             \
            REG_##block##_VM_INVALIDATE_ENG0_ADDR_RANGE_LO32,                                 \
            REG_##block##_VM_INVALIDATE_ENG0_ADDR_RANGE_HI32,                                 \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32,                              \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_HI32,                              \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_START_ADDR_LO32,                             \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_START_ADDR_HI32,                             \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32,                               \
            REG_##block##_VM_CONTEXT0_PAGE_TABLE_END_ADDR_HI32, REG_##block##_MC_VM_AGP_TOP,  \
            REG_##block##_MC_VM_AGP_BOT, REG_##block##_MC_VM_AGP_BASE,                        \
            REG_##block##_MC_VM_SYSTEM_APERTURE_LOW_ADDR,                                     \
            REG_##block##_MC_VM_SYSTEM_APERTURE_HIGH_ADDR, REG_##block##_MC_VM_MX_L1_TLB_CNTL \
    }
constexpr Hub kGfxHub = VGPU_TEST_HUB(GC);
constexpr Hub kMmHub = VGPU_TEST_HUB(MMHUB);
#undef VGPU_TEST_HUB

/// How a VF writes the aperture registers of a hub: those of GC by RLCG, those of MMHUB directly.
enum class WritePath { Rlcg, Direct };

void init_apertures(VfDevice& device, const Hub& hub, WritePath path) {
    const std::array<std::pair<std::uint32_t, std::uint32_t>, 6> values{
        {{hub.agp_base, 0},
         {hub.agp_bottom, 0x00ffffff},
         {hub.agp_top, 0},
         {hub.aperture_low, 0x003d0000},
         {hub.aperture_high, 0x003d07ff},
         {hub.l1_tlb, kMxL1TlbCntl}}};
    for (const auto& [reg, value] : values) {
        if (path == WritePath::Rlcg)
            device.rlcg_write(reg, value);
        else
            device.write(reg, value);
    }
}

void init_gart(VfDevice& device, const Hub& hub) {
    for (std::uint32_t engine = 0; engine < REG_COUNT_GC_VM_INVALIDATE_ENG0_REQ; ++engine) {
        device.write(hub.range_lo + engine * 2, 0xffffffff);
        device.write(hub.range_hi + engine * 2, 0x1f);
    }
    device.write(hub.base_lo, VramHeap::kGartTable | 1);
    device.write(hub.base_hi, 0);
    device.write(hub.start_lo, 0);
    device.write(hub.start_hi, 0);
    device.write(hub.end_lo, static_cast<std::uint32_t>(Gart::kBytes / 4096 - 1));
    device.write(hub.end_hi, 0);
}

void init_contexts(VfDevice& device, const Hub& hub) {
    device.write(hub.context_cntl, HW_PREP(VM_CONTEXT_CNTL, ENABLE, 1));
    for (std::uint32_t vmid = 1; vmid < CP_VMIDS; ++vmid) {
        device.write(hub.context_cntl + vmid, kVmContextCntl);
        device.write(hub.start_lo + vmid * 2, 0);
        device.write(hub.start_hi + vmid * 2, 0);
        device.write(hub.end_lo + vmid * 2, 0xffffffff);
        device.write(hub.end_hi + vmid * 2, 0xf);
    }
}

/// SDMA registers of one engine; the second engine's are at a fixed distance.
constexpr std::uint32_t kSdmaStride = REG_STRIDE_SDMA0_SDMA0_CNTL;

std::uint32_t checksum(std::span<const std::byte> bytes, std::size_t field) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const bool is_field = i >= field && i < field + 4;
        sum += is_field ? 0 : std::to_integer<std::uint32_t>(bytes[i]);
    }
    return sum;
}

}  // namespace

void VfClient::boot() {
    detect();
    request_full_access();
    read_identity();
    read_vbios();
    read_pf2vf();
    read_sizes();
    init_gmc();
    init_psp();
    ih_->start(*psp_);
    init_gfx();
    init_sdma();
    init_kfd();
    release_full_access();
    run_ib_tests();
}

void VfClient::detect() {
    const auto id = device_.read(REG_NBIO_RCC_IOV_FUNC_IDENTIFIER);
    if (HW_GET(RCC_IOV_FUNC_IDENTIFIER, IS_VF, id) == 0)
        throw VfError(fmt::format("the function is no VF: RCC_IOV_FUNC_IDENTIFIER {:#x}", id));
}

void VfClient::request_full_access() {
    mailbox_.request(MAILBOX_REQ_GPU_INIT_DATA, MAILBOX_VF_REQ_GPU_INIT_DATA_READY);
    mailbox_.request(MAILBOX_REQ_GPU_INIT_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU);
}

void VfClient::release_full_access() {
    if (!mailbox_.send(MAILBOX_REL_GPU_INIT_ACCESS))
        throw VfError("mailbox: the PF did not acknowledge REL_GPU_INIT_ACCESS");
}

void VfClient::read_identity() {
    (void)device_.read(REG_MP0_IP_DISCOVERY_VERSION);
    (void)device_.read(REG_NBIO_RCC_DEV0_EPF0_STRAP0);
    device_.write(REG_NBIO_PCIE_INDEX2, kSmcFlags);
    (void)device_.read(REG_NBIO_PCIE_DATA2);
}

void VfClient::read_vbios() {
    // The PF core puts these there; docs/hardware-contract.md
    constexpr std::size_t kSignature = 0, kMagic = 0x30, kHeaderPointer = 0x48, kAtom = 4;
    if (device_.vram().empty())
        throw VfError("VBIOS: BAR0 cannot be mapped; is the VF provisioned?");
    const auto rom = device_.vram_at(VF_VRAM_VBIOS_OFFSET, VF_VRAM_RESERVED_BYTES);
    device_.trace().add(TraceKind::VramRead, VF_VRAM_VBIOS_OFFSET, rom.size());
    std::array<std::byte, 4096> head{};
    std::ranges::copy(rom.first(head.size()), head.begin());
    if (softgpu::load<std::uint16_t>(head, kSignature) != 0xaa55)
        throw VfError("VBIOS: no ROM signature at VRAM 0");
    if (std::memcmp(head.data() + kMagic, " 761295520", 10) != 0)
        throw VfError("VBIOS: no ATI magic");
    const auto header = softgpu::load<std::uint16_t>(head, kHeaderPointer);
    if (header + kAtom + 4 > head.size() ||
        std::memcmp(head.data() + header + kAtom, "ATOM", 4) != 0)
        throw VfError("VBIOS: no ATOM header");
}

void VfClient::read_pf2vf() {
    const auto bytes = device_.vram_at(VF_VRAM_PF2VF_OFFSET, PF2VF_BYTES);
    device_.trace().add(TraceKind::VramRead, VF_VRAM_PF2VF_OFFSET, PF2VF_BYTES);
    std::array<std::byte, PF2VF_BYTES> copy{};
    std::ranges::copy(bytes, copy.begin());
    std::memcpy(&pf2vf_, copy.data(), sizeof pf2vf_);
    if (pf2vf_.version != PF2VF_VERSION || pf2vf_.size != PF2VF_BYTES)
        throw VfError(fmt::format("PF2VF: version {} size {}", pf2vf_.version, pf2vf_.size));
    const auto sum = checksum(copy, offsetof(pf2vf_message, checksum));
    if (sum != pf2vf_.checksum)
        throw VfError(fmt::format("PF2VF: checksum {:#x}, is {:#x}", pf2vf_.checksum, sum));
}

void VfClient::read_sizes() {
    (void)device_.read(REG_NBIO_BIOS_SCRATCH_4);
    vram_bytes_ = std::uint64_t{device_.read(REG_NBIO_RCC_CONFIG_MEMSIZE)} << 20;
    if (vram_bytes_ == 0 || vram_bytes_ != device_.vram().size())
        throw VfError(fmt::format("VRAM: {} bytes by register, {} bytes mapped", vram_bytes_,
                                  device_.vram().size()));
    const std::uint64_t base = device_.read(REG_MMHUB_MC_VM_FB_LOCATION_BASE);
    const std::uint64_t top = device_.read(REG_MMHUB_MC_VM_FB_LOCATION_TOP);
    if (((top - base + 1) << 24) < vram_bytes_)
        throw VfError(fmt::format("FB_LOCATION {:#x}..{:#x} is too small", base, top));
    if (device_.read(REG_GC_MC_VM_FB_OFFSET) != 0) throw VfError("MC_VM_FB_OFFSET is not 0");
}

void VfClient::init_gmc() {
    vram_ = std::make_unique<VramHeap>(device_);
    gart_ = std::make_unique<Gart>(device_);
    std::memset(device_.vram_at(VramHeap::kGartTable, Gart::kBytes / 512).data(), 0,
                Gart::kBytes / 512);
    device_.flush_hdp();
    init_gart(device_, kGfxHub);
    init_apertures(device_, kGfxHub, WritePath::Rlcg);
    device_.write(REG_GC_VM_L2_PROTECTION_FAULT_CNTL2, kFaultCntl2);
    init_contexts(device_, kGfxHub);
    init_gart(device_, kMmHub);
    init_apertures(device_, kMmHub, WritePath::Direct);
    init_contexts(device_, kMmHub);
    flush_tlb_by_mmio(1);
    gart_->set_flush([this] { flush_tlb_by_mmio(1); });
}

void VfClient::flush_tlb_by_mmio(std::uint32_t vmid_mask) {
    device_.flush_hdp();
    for (const auto* hub : {&kGfxHub, &kMmHub}) {
        device_.write(hub->request + kMmioFlushEngine, kInvalidateAll | vmid_mask);
        wait_for("TLB flush by MMIO", milliseconds(100), [&] {
            return (device_.read(hub->ack + kMmioFlushEngine) & vmid_mask) == vmid_mask;
        });
    }
}

void VfClient::init_psp() {
    // type codes in the order in which the driver loads: CE PFP ME MEC1 MEC1_JT MEC2 MEC2_JT
    constexpr std::array<std::uint32_t, 7> kFirmware{3, 2, 1, 4, 5, 4, 6};
    constexpr std::uint32_t kFirmwareBytes = 0x1000;
    if (device_.read(REG_MP0_MP0_SMN_C2PMSG_81) == 0) throw VfError("PSP: no sign of life");
    psp_ = std::make_unique<PspRing>(device_, *vram_);
    psp_->set_ih_client(3, 0x0011216b);
    psp_->set_ih_client(4, 0x0011216b);
    psp_->create();
    const auto tmr = vram_->at(VramHeap::kTmr, VramHeap::kTmrBytes);
    psp_->setup_vmr(tmr.address, static_cast<std::uint32_t>(VramHeap::kTmrBytes));
    const auto firmware = vram_->allocate(kFirmwareBytes);
    for (const auto type : kFirmware) psp_->load_firmware(firmware.address, kFirmwareBytes, type);
    vram_->free(firmware);
    ih_ = std::make_unique<IhRing>(device_);
}

void VfClient::count_cus() {
    cu_count_ = 0;
    for (unsigned engine = 0; engine < kShaderEngines; ++engine) {
        const auto index =
            HW_PREP(GRBM_GFX_INDEX, SE, engine) | HW_PREP(GRBM_GFX_INDEX, INSTANCE_BROADCAST, 1);
        device_.write(REG_GC_SCRATCH_REG3, index);
        device_.write(REG_GC_GRBM_GFX_INDEX, index);
        (void)device_.read(REG_GC_CC_RB_BACKEND_DISABLE);
        (void)device_.read(REG_GC_GC_USER_RB_BACKEND_DISABLE);
        const auto harvested = device_.read(REG_GC_CC_GC_SHADER_ARRAY_CONFIG) |
                               device_.read(REG_GC_GC_USER_SHADER_ARRAY_CONFIG);
        const auto inactive = HW_GET(CC_GC_SHADER_ARRAY_CONFIG, INACTIVE_CUS, harvested);
        cu_count_ += static_cast<unsigned>(std::popcount(~inactive & kCusPerEngineMask));
    }
    device_.write(REG_GC_SCRATCH_REG3, kBroadcastAll);
    device_.write(REG_GC_GRBM_GFX_INDEX, kBroadcastAll);
    if (cu_count_ == 0) throw VfError("every compute unit is harvested");
}

void VfClient::init_gfx() {
    count_cus();
    for (std::uint32_t vmid = CP_FIRST_KFD_VMID; vmid < CP_VMIDS; ++vmid) {
        device_.select({.vmid = vmid});
        device_.rlcg_write(REG_GC_SH_MEM_CONFIG, kShMemConfig);
        device_.rlcg_write(REG_GC_SH_MEM_BASES, kShMemBases);
        device_.write(REG_GC_GDS_VMID0_BASE + vmid * 2, 0);
        device_.write(REG_GC_GDS_VMID0_SIZE + vmid * 2, 0);
    }
    device_.select({});
    const auto state = vram_->allocate(4096);
    device_.rlcg_write(REG_GC_RLC_CSIB_ADDR_HI, high32(state.address));
    device_.rlcg_write(REG_GC_RLC_CSIB_ADDR_LO, low32(state.address));
    device_.rlcg_write(REG_GC_RLC_CSIB_LENGTH, 0x388);
    device_.rlcg_write(REG_GC_CP_ME_CNTL, 0);
    device_.write(REG_GC_CP_INT_CNTL_RING0, 0x01fc0000);
    init_kiq();
    init_gfx_ring();
    device_.rlcg_write(REG_GC_CP_MEC_CNTL, 0);
    map_compute_rings();
}

Buffer VfClient::make_kernel_mqd(const Ring& ring, std::uint32_t pq_control) {
    const auto mqd = vram_->allocate(MQD_BYTES);
    const auto eop = gart_->allocate(4096);
    write_kernel_mqd(mqd, {ring.memory().address, ring.spec().dwords, ring.rptr_address(),
                           ring.wptr_address(), eop.address, ring.spec().doorbell, pq_control});
    return mqd;
}

void VfClient::init_kiq() {
    device_.rlcg_write(REG_GC_RLC_CP_SCHEDULERS,
                       HW_PREP(RLC_CP_SCHEDULERS, KIQ_VALID, 1) |
                           HW_PREP(RLC_CP_SCHEDULERS, KIQ_ME, kKiq.me) |
                           HW_PREP(RLC_CP_SCHEDULERS, KIQ_PIPE, kKiq.pipe));
    kiq_ = std::make_unique<Ring>(
        device_, *gart_,
        RingSpec{"kiq", 0x40000, DOORBELL_KIQ, RingUnit::CountsDwords, FenceStyle::WriteData});
    const auto mqd = make_kernel_mqd(*kiq_, pq_control_kiq());
    device_.flush_hdp();
    device_.write(REG_GC_CP_MEC_DOORBELL_RANGE_LOWER, 0);
    device_.write(REG_GC_CP_MEC_DOORBELL_RANGE_UPPER, 0x450);
    device_.select(kKiq);
    // every banked register the MQD holds; ACTIVE comes last
    constexpr std::array kRegisters{REG_GC_CP_HQD_EOP_BASE_ADDR,
                                    REG_GC_CP_HQD_EOP_BASE_ADDR_HI,
                                    REG_GC_CP_HQD_EOP_CONTROL,
                                    REG_GC_CP_HQD_PQ_DOORBELL_CONTROL,
                                    REG_GC_CP_MQD_BASE_ADDR,
                                    REG_GC_CP_MQD_BASE_ADDR_HI,
                                    REG_GC_CP_MQD_CONTROL,
                                    REG_GC_CP_HQD_PQ_BASE,
                                    REG_GC_CP_HQD_PQ_BASE_HI,
                                    REG_GC_CP_HQD_PQ_CONTROL,
                                    REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR,
                                    REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR_HI,
                                    REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR,
                                    REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR_HI,
                                    REG_GC_CP_HQD_PQ_WPTR_LO,
                                    REG_GC_CP_HQD_PQ_WPTR_HI,
                                    REG_GC_CP_HQD_VMID,
                                    REG_GC_CP_HQD_PERSISTENT_STATE,
                                    REG_GC_CP_HQD_ACTIVE};
    for (const auto reg : kRegisters)
        device_.rlcg_write(reg, mqd.load<std::uint32_t>(std::uint64_t{MQD_DWORD_OF(reg)} * 4));
    device_.select({});
    ring_test(*kiq_);
    gart_->set_flush([this] { flush_tlb_by_mmio(1); });
}

void VfClient::init_gfx_ring() {
    gfx_ = std::make_unique<Ring>(
        device_, *gart_,
        RingSpec{"gfx", 2048, DOORBELL_GFX_RING0, RingUnit::CountsDwords, FenceStyle::ReleaseMem});
    device_.write(REG_GC_CP_RB_WPTR_DELAY, 0);
    device_.write(REG_GC_CP_RB_VMID, 0);
    device_.write(REG_GC_CP_RB0_CNTL, 0x80a);
    device_.write(REG_GC_CP_RB0_WPTR, 0);
    device_.write(REG_GC_CP_RB0_WPTR_HI, 0);
    device_.write(REG_GC_CP_RB0_RPTR_ADDR, low32(gfx_->rptr_address()));
    device_.write(REG_GC_CP_RB0_RPTR_ADDR_HI, high32(gfx_->rptr_address()));
    device_.write(REG_GC_CP_RB_WPTR_POLL_ADDR_LO, low32(gfx_->wptr_address()));
    device_.write(REG_GC_CP_RB_WPTR_POLL_ADDR_HI, high32(gfx_->wptr_address()));
    device_.write(REG_GC_CP_RB0_BASE, low32(gfx_->memory().address >> 8));
    device_.write(REG_GC_CP_RB0_BASE_HI, high32(gfx_->memory().address >> 8));
    device_.write(REG_GC_CP_RB_DOORBELL_CONTROL,
                  HW_PREP(CP_RB_DOORBELL_CONTROL, OFFSET, DOORBELL_GFX_RING0) |
                      HW_PREP(CP_RB_DOORBELL_CONTROL, ENABLE, 1));
    device_.write(REG_GC_CP_RB_DOORBELL_RANGE_LOWER, 0x458);
    device_.write(REG_GC_CP_RB_DOORBELL_RANGE_UPPER, 0x0ffffffc);
    ring_test(*gfx_);
}

void VfClient::map_compute_rings() {
    constexpr std::uint64_t kKcqMask = 0x101;  // pipe 0 and pipe 1, queue 0
    auto packets = pm4::set_resources(0, kKcqMask, 0);
    for (std::uint32_t pipe = 0; pipe < 2; ++pipe) {
        compute_.push_back(std::make_unique<Ring>(
            device_, *gart_,
            RingSpec{fmt::format("comp_1.{}.0", pipe), 2048, DOORBELL_MEC_RING0 + pipe * 2,
                     RingUnit::CountsDwords, FenceStyle::ReleaseMem}));
        const auto& ring = *compute_.back();
        const auto mqd = make_kernel_mqd(ring, pq_control_kiq());
        packets += pm4::map_queue_at_slot({.doorbell = ring.spec().doorbell,
                                           .mqd = mqd.address,
                                           .wptr = ring.wptr_address(),
                                           .me = 1,
                                           .pipe = pipe});
    }
    device_.flush_hdp();
    kiq_->sync(packets);
    for (auto& ring : compute_) ring_test(*ring);
}

void VfClient::ring_test(Ring& ring) {
    device_.write(REG_GC_SCRATCH_REG0, 0xcafedead);
    ring.push(pm4::set_uconfig_reg(REG_GC_SCRATCH_REG0, 0xdeadbeef));
    wait_for("ring test of " + ring.spec().name, kRingTestLimit,
             [&] { return device_.read(REG_GC_SCRATCH_REG0) == 0xdeadbeef; });
}

void VfClient::init_sdma() {
    for (unsigned engine = 0; engine < 2; ++engine) init_sdma_engine(engine);
}

void VfClient::init_sdma_engine(unsigned engine) {
    const auto doorbell = engine == 0 ? DOORBELL_SDMA0 : DOORBELL_SDMA1;
    sdma_.push_back(std::make_unique<Ring>(
        device_, *gart_,
        RingSpec{fmt::format("sdma{}", engine), 2048, static_cast<std::uint32_t>(doorbell),
                 RingUnit::CountsBytes, FenceStyle::SdmaFence}));
    auto& ring = *sdma_.back();
    const auto reg = [engine](std::uint32_t of_engine0) {
        return of_engine0 + engine * kSdmaStride;
    };
    device_.write(reg(REG_SDMA0_SDMA0_SEM_WAIT_FAIL_TIMER_CNTL), 0);
    const auto control =
        HW_PREP(SDMA_RB_CNTL, RB_SIZE, 11) | HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), control);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR), 0);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_HI), 0);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR), 0);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_HI), 0);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI), high32(ring.rptr_address()));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO), low32(ring.rptr_address()));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_BASE), low32(ring.memory().address >> 8));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_BASE_HI), high32(ring.memory().address >> 8));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_MINOR_PTR_UPDATE), 1);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_DOORBELL), HW_PREP(SDMA_DOORBELL, ENABLE, 1));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET),
                  HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, doorbell));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_MINOR_PTR_UPDATE), 0);
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_LO), low32(ring.wptr_address()));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_HI), high32(ring.wptr_address()));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_CNTL),
                  HW_PREP(SDMA_WPTR_POLL_CNTL, F32_POLL, 1));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), HW_SET(SDMA_RB_CNTL, RB_ENABLE, control, 1));
    device_.write(reg(REG_SDMA0_SDMA0_GFX_IB_CNTL), 1);
    device_.write(reg(REG_SDMA0_SDMA0_CNTL), kSdmaCntl);
    device_.write(reg(REG_SDMA0_SDMA0_F32_CNTL), 0);
    sdma_test(ring);
}

void VfClient::sdma_test(Ring& ring) {
    const auto word = ring.scratch();
    word.store<std::uint32_t>(0, 0xcafedead);
    const std::array data{0xdeadbeefu};
    ring.push(sdma::write(word.address, data));
    wait_for("ring test of " + ring.spec().name, kRingTestLimit,
             [&] { return word.load<std::uint32_t>() == 0xdeadbeef; });
}

void VfClient::init_kfd() {
    constexpr std::uint64_t kHiqQueueMask = 0xfffffefe;
    constexpr std::uint32_t kHiqVmids = 0xff00;
    constexpr std::uint32_t kHiqType = 1;
    run_list_ = gart_->allocate(16384);
    fence_ = gart_->allocate(4096);
    hiq_ = std::make_unique<Ring>(
        device_, *gart_,
        RingSpec{"hiq", 512, DOORBELL_HIQ, RingUnit::CountsDwords, FenceStyle::WriteData});
    const auto mqd = make_kernel_mqd(*hiq_, pq_control_hiq());
    device_.flush_hdp();
    kiq_->sync(pm4::map_queue_at_slot({.doorbell = DOORBELL_HIQ,
                                       .mqd = mqd.address,
                                       .wptr = hiq_->wptr_address(),
                                       .engine = PM4_ENGINE_HIQ,
                                       .me = 2}));
    hiq_->sync(pm4::set_resources(kHiqVmids, kHiqQueueMask, kHiqType));
    mailbox_.enable_interrupts();
    for (const auto* hub : {&kGfxHub, &kMmHub}) {
        device_.write(hub->context_cntl, kVmContext0CntlIrq);
        for (std::uint32_t vmid = 1; vmid < CP_VMIDS; ++vmid)
            device_.write(hub->context_cntl + vmid, kVmContextCntlIrq);
    }
}

void VfClient::run_ib_tests() {
    gart_->set_flush([this] { flush_tlb(1); });
    ib_test(*gfx_);
    for (auto& ring : compute_) ib_test(*ring);
    for (auto& ring : sdma_) sdma_test(*ring);
}

void VfClient::ib_test(Ring& ring) {
    const auto ib = gart_->allocate(4096);
    const std::array data{0xdeadbeefu};
    const auto target = ib.part(2048, 8);
    target.store<std::uint32_t>(0, 0xcafedead);
    const auto body = pm4::write_memory(target.address, data);
    ib.fill_from(std::span<const std::uint32_t>(body));
    ring.sync(pm4::indirect_buffer(ib.address, static_cast<std::uint32_t>(body.size()), 0));
    if (target.load<std::uint32_t>() != 0xdeadbeef)
        throw VfError("IB test of " + ring.spec().name + ": the IB had no effect");
    gart_->free(ib);
}

void VfClient::flush_tlb(std::uint32_t vmid_mask) {
    Dwords packets;
    for (const auto* hub : {&kGfxHub, &kMmHub})
        packets += pm4::write_and_wait_register(hub->request, hub->ack, kInvalidateAll | vmid_mask,
                                                vmid_mask);
    kiq_->sync(packets);
}

void VfClient::stop_kiq() {
    device_.select(kKiq);
    device_.rlcg_write(REG_GC_CP_HQD_DEQUEUE_REQUEST, 1);
    wait_for("KIQ to stop", milliseconds(1000), [&] {
        return HW_GET(CP_HQD_ACTIVE, ACTIVE, device_.read(REG_GC_CP_HQD_ACTIVE)) == 0;
    });
    for (const auto reg :
         {REG_GC_CP_HQD_DEQUEUE_REQUEST, REG_GC_CP_HQD_IQ_TIMER, REG_GC_CP_HQD_IB_CONTROL,
          REG_GC_CP_HQD_PERSISTENT_STATE, REG_GC_CP_HQD_PQ_DOORBELL_CONTROL, REG_GC_CP_HQD_PQ_RPTR,
          REG_GC_CP_HQD_PQ_WPTR_HI, REG_GC_CP_HQD_PQ_WPTR_LO})
        device_.rlcg_write(reg, 0);
    device_.select({});
}

void VfClient::unload() {
    while (!processes_.empty()) destroy_process(*processes_.back());
    mailbox_.request(MAILBOX_REQ_GPU_FINI_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU);
    Dwords packets;
    for (const auto& ring : compute_)
        packets += pm4::unmap_queues(PM4_UNMAP_BY_DOORBELL, PM4_UNMAP_RESET, ring->spec().doorbell);
    packets += pm4::unmap_queues(PM4_UNMAP_BY_DOORBELL, PM4_UNMAP_RESET, DOORBELL_HIQ);
    kiq_->sync(packets);
    for (unsigned engine = 0; engine < sdma_.size(); ++engine)
        device_.write(REG_SDMA0_SDMA0_GFX_RB_CNTL + engine * kSdmaStride, 0);
    device_.write(REG_GC_CP_RB_DOORBELL_CONTROL, 0);
    stop_kiq();
    ih_->stop(*psp_);
    psp_->destroy();
    forget();
    if (!mailbox_.send(MAILBOX_REL_GPU_FINI_ACCESS))
        throw VfError("mailbox: the PF did not acknowledge REL_GPU_FINI_ACCESS");
}

}  // namespace vgpu::test
