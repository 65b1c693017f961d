// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>
#include <sstream>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/hw/vf_page_table.h"
#include "tests/unit/gpu/gpu_rig.h"

namespace vgpu::softgpu::test {
namespace {

constexpr std::uint64_t kVf1Vram = 32u << 20;
constexpr std::uint64_t kVf2Vram = 64u << 20;
constexpr std::uint32_t kMegabytes = 16;

class GpuTest : public GpuRig {};

TEST_F(GpuTest, ThePfDescribesItselfAndItsVfs) {
    const auto driver = pf();
    EXPECT_EQ(driver->config<std::uint16_t>(0), VGPU_PCI_VENDOR_ATI);
    EXPECT_EQ(driver->config<std::uint16_t>(2), VGPU_PCI_DEVICE_PF);
    EXPECT_EQ(driver->vsec<std::uint16_t>(4), GPUIOV_VSEC_ID);
    EXPECT_EQ(driver->reg(REG_VGPU_TOTAL_VFS), 4u);
    EXPECT_EQ(driver->reg(REG_VGPU_VRAM_SIZE_MB), 128u);
}

TEST_F(GpuTest, AVfIsRecognisedByTheStockDriversProbe) {
    const auto guest = vf(1);
    EXPECT_EQ(guest->config<std::uint16_t>(2), VGPU_PCI_DEVICE_VF);
    EXPECT_EQ(guest->reg(REG_NBIO_RCC_IOV_FUNC_IDENTIFIER), 0x80000001u);
    EXPECT_EQ(guest->reg(REG_NBIO_RCC_CONFIG_MEMSIZE), 0u);
    EXPECT_EQ(guest->reg(REG_VGPU_ID), 0u);
}

TEST_F(GpuTest, ProvisionedVramIsTheVfsAndNobodyElses) {
    const auto driver = pf();
    const auto guest = vf(1);
    const auto neighbour = vf(2);
    driver->provision(1, kVf1Vram, kMegabytes);
    driver->provision(2, kVf2Vram, kMegabytes);
    EXPECT_EQ(guest->reg(REG_NBIO_RCC_CONFIG_MEMSIZE), kMegabytes);
    guest->set_vram<std::uint64_t>(0x1230, 0x1122334455667788ull);
    EXPECT_EQ(guest->vram<std::uint64_t>(0x1230), 0x1122334455667788ull);
    EXPECT_EQ(neighbour->vram<std::uint64_t>(0x1230), 0u);
    EXPECT_EQ(driver->get<std::uint64_t>(VGPU_BAR_VRAM, kVf1Vram + 0x1230), 0x1122334455667788ull);
    EXPECT_EQ(guest->vram<std::uint32_t>(kMegabytes << 20), ~0u);  // aperture beyond the slice
}

TEST_F(GpuTest, ATableThatNamesANeighboursPageIsRefused) {
    const auto driver = pf();
    const auto guest = vf(2);
    driver->provision(1, kVf1Vram, kMegabytes);
    driver->provision(2, kVf1Vram + (8u << 20), kMegabytes);
    EXPECT_EQ(driver->bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO) & VF_PAGE_TABLE_VALID, 0u);
    EXPECT_EQ(guest->reg(REG_NBIO_RCC_CONFIG_MEMSIZE), 0u);
}

TEST_F(GpuTest, ASliceLargerThanTheApertureIsRefused) {
    const auto driver = pf();
    driver->provision(1, kVf1Vram, 64);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_LO) & VF_PAGE_TABLE_VALID, 0u);
}

TEST_F(GpuTest, MappedVramIsTheSameMemory) {
    const auto driver = pf();
    driver->provision(1, kVf1Vram, kMegabytes);
    const auto guest = vf(1);
    const OwnedFd fd = guest->bar_memory(VGPU_BAR_VRAM);
    ASSERT_TRUE(fd);
    void* bar = mmap(nullptr, kMegabytes << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(bar, MAP_FAILED);
    std::memset(bar, 0x5a, 4096);
    EXPECT_EQ(guest->vram<std::uint32_t>(0), 0x5a5a5a5au);
    munmap(bar, kMegabytes << 20);
}

TEST_F(GpuTest, AnOldClientsMappingSeesNothingOfTheNextOwner) {
    const auto driver = pf();
    driver->provision(1, kVf1Vram, kMegabytes);
    auto guest = vf(1);
    const OwnedFd fd = guest->bar_memory(VGPU_BAR_VRAM);
    ASSERT_TRUE(fd);
    void* old = mmap(nullptr, kMegabytes << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(old, MAP_FAILED);
    guest->close();
    driver->release(1);
    driver->provision(2, kVf1Vram, kMegabytes);
    const auto next = vf(2);
    EXPECT_EQ(next->vram<std::uint64_t>(0), 0u);
    next->set_vram<std::uint64_t>(0, 0xdeadbeefull);
    EXPECT_EQ(load<std::uint64_t>(std::span(static_cast<std::byte*>(old), 8)), 0u);
    std::memset(old, 0xff, 4096);
    EXPECT_EQ(next->vram<std::uint64_t>(0), 0xdeadbeefull);
    munmap(old, kMegabytes << 20);
}

TEST_F(GpuTest, AShutFramebufferGateReadsAllOnesAndOffersNoMapping) {
    const auto driver = pf();
    driver->provision(1, kVf1Vram, kMegabytes);
    driver->set_bank(1, REG_VGPU_VF0_GATES, 0);
    const auto guest = vf(1);
    EXPECT_FALSE(guest->bar_memory(VGPU_BAR_VRAM));
    guest->set_vram<std::uint32_t>(0, 1);
    EXPECT_EQ(guest->vram<std::uint32_t>(0), ~0u);
    EXPECT_EQ(driver->get<std::uint32_t>(VGPU_BAR_VRAM, kVf1Vram), 0u);
    EXPECT_GE(driver->bank(1, REG_VGPU_VF0_BAD_ACCESSES), 2u);
}

TEST_F(GpuTest, TheRegisterGateGuardsFullAccessRegistersAndTheRlcg) {
    const auto driver = pf();
    const auto guest = vf(1);
    guest->set_reg(REG_GC_CP_DEVICE_ID, 5);
    EXPECT_EQ(guest->reg(REG_GC_CP_DEVICE_ID), 0u);
    guest->set_reg(REG_GC_SCRATCH_REG1,
                   HW_PREP(SCRATCH_REG1, RLCG_COMMAND, 8) |
                       HW_PREP(SCRATCH_REG1, RLCG_OFFSET, REG_GC_CP_DEVICE_ID));
    guest->set_reg(REG_GC_RLC_SPARE_INT, 1);
    EXPECT_EQ(HW_GET(SCRATCH_REG1, RLCG_ERROR, guest->reg(REG_GC_SCRATCH_REG1)), 4u);
    driver->provision(1, kVf1Vram, kMegabytes);
    guest->set_reg(REG_GC_CP_DEVICE_ID, 5);
    EXPECT_EQ(guest->reg(REG_GC_CP_DEVICE_ID), 5u);
    EXPECT_NE(HW_GET(VGPU_STATUS, IN_FULL_ACCESS, driver->bank(1, REG_VGPU_VF0_STATUS)), 0u);
}

TEST_F(GpuTest, AMailboxRequestReachesThePfAndOnlyThePfAnswersIt) {
    const auto driver = pf();
    const auto guest = vf(3);
    driver->enable_interrupts(GPUIOV_INTR_HVVM_MBOX_VALID);
    guest->set_reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, MAILBOX_REQ_GPU_INIT_ACCESS);
    guest->put<std::uint8_t>(VGPU_BAR_REGISTERS, REG_NBIO_MAILBOX_CONTROL * 4ull, 1);
    ASSERT_TRUE(driver->mailbox_event.wait());
    EXPECT_NE(driver->take_interrupts() & GPUIOV_INTR_HVVM_MBOX_VALID, 0u);
    EXPECT_EQ(driver->vsec<std::uint32_t>(GPUIOV_HVVM_MBOX1), 1u << 4);
    EXPECT_EQ(guest->reg(REG_NBIO_MAILBOX_CONTROL), 1u);  // neither acknowledged nor answered
    EXPECT_EQ(guest->reg(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), 0u);

    driver->set_reg(REG_NBIO_MAILBOX_INDEX, 3);
    EXPECT_EQ(driver->reg(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_REQ_GPU_INIT_ACCESS);
    driver->set_reg(REG_NBIO_MAILBOX_CONTROL, HW_PREP(MAILBOX_CONTROL, RCV_ACK, 1));
    EXPECT_EQ(HW_GET(MAILBOX_CONTROL, TRN_ACK, guest->reg(REG_NBIO_MAILBOX_CONTROL)), 1u);
    driver->set_reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, MAILBOX_VF_READY_TO_ACCESS_GPU);
    driver->set_reg(REG_NBIO_MAILBOX_CONTROL, HW_PREP(MAILBOX_CONTROL, TRN_VALID, 1));
    EXPECT_EQ(guest->reg(REG_NBIO_MAILBOX_MSGBUF_RCV_DW0), MAILBOX_VF_READY_TO_ACCESS_GPU);
    EXPECT_EQ(driver->vsec<std::uint32_t>(GPUIOV_HVVM_MBOX1), 0u);
}

TEST_F(GpuTest, AnFlrResetsTheBanksAndKeepsWhatTheGuestNeedsAcrossIt) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    const std::uint32_t top = guest->reg(REG_GC_MC_VM_FB_LOCATION_TOP);
    guest->set_vram<std::uint32_t>(0x100, 0x1234);
    guest->set_reg(REG_GC_CP_DEVICE_ID, 5);
    guest->set_reg(REG_OSSSYS_IH_RB_RPTR, 0x40);
    guest->set_reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, MAILBOX_READY_TO_RESET);
    guest->set_reg(REG_NBIO_MAILBOX_INT_CNTL, 3);
    driver->flr(1);
    EXPECT_EQ(guest->reg(REG_GC_CP_DEVICE_ID), 0u);
    EXPECT_EQ(guest->reg(REG_OSSSYS_IH_RB_RPTR), 0u);
    EXPECT_EQ(guest->reg(REG_NBIO_RCC_CONFIG_MEMSIZE), kMegabytes);
    EXPECT_EQ(guest->reg(REG_GC_MC_VM_FB_LOCATION_TOP), top);
    EXPECT_EQ(guest->reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0), MAILBOX_READY_TO_RESET);
    EXPECT_EQ(guest->reg(REG_NBIO_MAILBOX_INT_CNTL), 3u);
    EXPECT_EQ(guest->reg(REG_MP0_MP0_SMN_C2PMSG_81), 0x0df40b31u);
    EXPECT_EQ(guest->vram<std::uint32_t>(0x100), 0x1234u);
}

TEST_F(GpuTest, ADeviceResetDuringAnotherResetEndsWithItsOwnResetOfEachVf) {
    const auto driver = pf();
    const auto reset_device = [&] {
        driver->set_vsec<std::uint8_t>(GPUIOV_RESET_CONTROL, GPUIOV_RESET_DEVICE);
    };
    const auto is_over = [&](std::uint8_t number) { return !gpu->vf(VfId{number}).is_resetting(); };
    auto last = gpu->vf(VfId{4}).enter();  // holds up the reset of VF 4
    reset_device();
    ASSERT_TRUE(eventually([&] { return is_over(1) && is_over(2) && is_over(3); }));
    const auto second = gpu->vf(VfId{2}).enter();
    reset_device();
    last.unlock();
    EXPECT_TRUE(eventually([&] { return is_over(1); }));
    EXPECT_FALSE(is_over(4)) << "its second reset comes after that of VF 2";
}

TEST_F(GpuTest, AClientsResetShutsTheGatesUntilThePfAcknowledges) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_VF_FLR);
    (void)driver->take_interrupts();
    (void)driver->mailbox_event.is_signalled();
    guest->device_reset();
    ASSERT_TRUE(driver->mailbox_event.wait());
    EXPECT_EQ(HW_GET(VGPU_RESET, FLR_PENDING, driver->bank(1, REG_VGPU_VF0_RESET)), 1u);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_GATES), HW_PREP(VGPU_GATES, FB_EN, 1));
    driver->set_bank(1, REG_VGPU_VF0_RESET, HW_PREP(VGPU_RESET, FLR_PENDING, 1));
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_RESET), 0u);
}

TEST_F(GpuTest, AGrantToAClientThatHasLeftOpensNoGatesForTheNextOne) {
    const auto driver = pf();
    auto guest = vf(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    guest->close();
    ASSERT_TRUE(eventually(
        [&] { return HW_GET(VGPU_RESET, FLR_PENDING, driver->bank(1, REG_VGPU_VF0_RESET)) == 1; }));
    driver->set_bank(1, REG_VGPU_VF0_GATES, 7);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_GATES), HW_PREP(VGPU_GATES, FB_EN, 1));
    guest = vf(1);
    guest->set_reg(REG_GC_CP_DEVICE_ID, 5);
    guest->ring(DOORBELL_PROCESS_FIRST, 1);
    EXPECT_EQ(guest->reg(REG_GC_CP_DEVICE_ID), 0u);
    EXPECT_EQ(HW_GET(VGPU_STATUS, HAS_WORK, driver->bank(1, REG_VGPU_VF0_STATUS)), 0u);
    driver->set_bank(1, REG_VGPU_VF0_RESET, HW_PREP(VGPU_RESET, FLR_PENDING, 1));
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_GATES), HW_PREP(VGPU_GATES, FB_EN, 1));
    driver->set_bank(1, REG_VGPU_VF0_GATES, 7);
    guest->set_reg(REG_GC_CP_DEVICE_ID, 5);
    EXPECT_EQ(guest->reg(REG_GC_CP_DEVICE_ID), 5u);
}

TEST_F(GpuTest, AttachAndDetachAreSeenByThePf) {
    const auto driver = pf();
    driver->enable_interrupts(GPUIOV_INTR_VF_FLR);
    auto guest = vf(2);
    ASSERT_TRUE(driver->mailbox_event.wait());
    EXPECT_EQ(HW_GET(VGPU_STATUS, ATTACHED, driver->bank(2, REG_VGPU_VF0_STATUS)), 1u);
    guest->set_reg(REG_GC_SCRATCH_REG0, 7);
    guest->close();
    EXPECT_TRUE(eventually(
        [&] { return HW_GET(VGPU_STATUS, ATTACHED, driver->bank(2, REG_VGPU_VF0_STATUS)) == 0; }));
    EXPECT_EQ(HW_GET(VGPU_RESET, FLR_PENDING, driver->bank(2, REG_VGPU_VF0_RESET)), 1u);
    guest = vf(2);
    EXPECT_EQ(guest->reg(REG_GC_SCRATCH_REG0), 0u);  // nothing of the last client is left
}

TEST_F(GpuTest, ThePfMayComeAndGoWithoutTouchingAVf) {
    auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    guest->set_vram<std::uint32_t>(0, 0x77);
    driver->close();
    EXPECT_EQ(guest->vram<std::uint32_t>(0), 0x77u);
    driver.reset();
    driver = pf();
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_FB_SIZE_MB), kMegabytes);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_GATES), 7u);
}

TEST_F(GpuTest, ReleasedVramIsZeroAndScrubbedStateIsGone) {
    const auto driver = pf();
    const auto guest = vf(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    guest->set_vram<std::uint32_t>(0x1000, 0x77);
    guest->set_reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0, 0x99);
    EXPECT_EQ(driver->operation(VGPU_OP_VERIFY_ZERO, 0, kVf1Vram, 0, kMegabytes << 20),
              static_cast<std::uint32_t>(VGPU_OP_REFUSED));
    driver->release(1);
    EXPECT_EQ(driver->operation(VGPU_OP_VERIFY_ZERO, 0, kVf1Vram, 0, kMegabytes << 20),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(driver->operation(VGPU_OP_SCRUB_STATE, 1, 0, 0, 0),
              static_cast<std::uint32_t>(VGPU_OP_DONE));
    EXPECT_EQ(vf(1)->reg(REG_NBIO_MAILBOX_MSGBUF_TRN_DW0), 0u);
}

TEST_F(GpuTest, TheClientOfAReleasedVfIsHungUpAndOthersStay) {
    const auto driver = pf();
    const auto neighbour = vf(2);
    driver->provision(1, kVf1Vram, kMegabytes);
    driver->provision(2, kVf2Vram, kMegabytes);
    const auto frozen = vf(1);
    EXPECT_NE(driver->bank(1, REG_VGPU_VF0_STATUS) & HW_FIELD_MASK(VGPU_STATUS, ATTACHED), 0u);
    driver->release(1);
    driver->provision(1, kVf1Vram, kMegabytes);
    EXPECT_EQ(driver->bank(1, REG_VGPU_VF0_STATUS) & HW_FIELD_MASK(VGPU_STATUS, ATTACHED), 0u);
    const auto next = vf(1);
    next->set_vram<std::uint32_t>(0, 7);
    EXPECT_EQ(next->vram<std::uint32_t>(0), 7u);
    neighbour->set_vram<std::uint32_t>(0, 9);
    EXPECT_EQ(neighbour->vram<std::uint32_t>(0), 9u);
}

TEST_F(GpuTest, DoorbellsOfAnInactiveVfAreLatchedAndWakeThePf) {
    const auto driver = pf();
    const auto guest = vf(2);
    driver->provision(2, kVf2Vram, kMegabytes);
    driver->enable_interrupts(GPUIOV_INTR_GFX_VM_BUSY);
    driver->set_reg(REG_VGPU_WAKE_ENABLE, 1u << 1);
    guest->ring(DOORBELL_PROCESS_FIRST, 1);
    ASSERT_TRUE(driver->switch_event.wait());
    EXPECT_NE(
        driver->vsec<std::uint32_t>(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_VM_BUSY_STATUS) & 2u,
        0u);
    EXPECT_EQ(driver->bank(2, REG_VGPU_VF0_DOORBELLS_LATCHED), 1u);
    EXPECT_EQ(HW_GET(VGPU_STATUS, HAS_WORK, driver->bank(2, REG_VGPU_VF0_STATUS)), 1u);
    driver->set_bank(2, REG_VGPU_VF0_GATES, 0);
    guest->ring(DOORBELL_PROCESS_FIRST, 2);
    EXPECT_EQ(driver->bank(2, REG_VGPU_VF0_DOORBELLS_LATCHED), 1u);
}

TEST(GpuSpec, WrongOptionsAreNamed) {
    const SteadyClock clock;
    Gpu::Spec spec;
    spec.vfs = 17;
    EXPECT_NE(Gpu::create(spec, clock).error().message.find("--vfs"), std::string::npos);
    spec = {};
    spec.aperture = 48_MiB;
    EXPECT_NE(Gpu::create(spec, clock).error().message.find("--aperture-mb"), std::string::npos);
    spec = {};
    spec.vram = 40_MiB;
    EXPECT_NE(Gpu::create(spec, clock).error().message.find("--vram-mb"), std::string::npos);
    spec = {};
    spec.threads = 0;
    EXPECT_NE(Gpu::create(spec, clock).error().message.find("--threads"), std::string::npos);
    spec = {};
    spec.compute_units = 65;
    EXPECT_NE(Gpu::create(spec, clock).error().message.find("--cus"), std::string::npos);
}

/// No file of this process, and so no memory for code, may be larger.
class FileLimit {
public:
    explicit FileLimit(Bytes largest) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{largest.count, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, SIG_DFL);
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    rlimit before_{};
};

/// On a processor without AVX-512 the reason is another one, but the GPU works as well.
TEST(GpuSpec, TranslatorWithoutMemoryForCodeInterpretsAndSaysSoOnce) {
    std::ostringstream text;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
    {
        const FileLimit limit(40_MiB);
        const SteadyClock clock;
        Gpu::Spec spec;
        spec.vfs = 4;
        spec.vram = 32_MiB;
        spec.isa_tier = IsaTier::Translator;
        EXPECT_TRUE(Gpu::create(spec, clock).has_value());
    }
    spdlog::set_default_logger(before);
    const std::string log = text.str();
    const auto first = log.find("waves are interpreted, not translated: ");
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find("waves are interpreted", first + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace vgpu::softgpu::test
