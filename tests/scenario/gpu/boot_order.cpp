// SPDX-License-Identifier: MIT
#include "tests/scenario/gpu/boot_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/mailbox.h"
#include "pf-driver/hw/pf2vf.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/psp.h"
#include "pf-driver/hw/regs.h"
#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

using Kind = TraceKind;

Milestone access(std::string name, Kind kind, std::uint32_t number) {
    return {std::move(name), kind, [kind, number](const TraceEvent& event) {
                return event.kind == kind && event.number == number;
            }};
}

Milestone valued(std::string name, Kind kind, std::uint32_t number, std::uint64_t value) {
    return {std::move(name), kind, [kind, number, value](const TraceEvent& event) {
                return event == TraceEvent{kind, number, value};
            }};
}

/// Adds what accesses to some registers mean: mailbox messages, and RLCG writes through the scratch
/// registers.
class Reader {
public:
    void take(Kind kind, std::uint32_t number, std::uint64_t value) {
        events_.push_back({kind, number, value});
        if (kind == Kind::Read && number == REG_NBIO_MAILBOX_MSGBUF_RCV_DW0 && value != 0)
            events_.push_back({Kind::MailboxGot, static_cast<std::uint32_t>(value), 0});
        if (kind != Kind::Write) return;
        if (number == REG_NBIO_MAILBOX_MSGBUF_TRN_DW0) message_ = static_cast<std::uint32_t>(value);
        if (number == REG_NBIO_MAILBOX_CONTROL && value == kSend)
            events_.push_back({Kind::MailboxSend, message_, 0});
        if (number == REG_GC_SCRATCH_REG0) data_ = value;
        if (number == REG_GC_SCRATCH_REG1)
            events_.push_back({Kind::RlcgWrite, low_bits(value), data_});
    }
    [[nodiscard]] std::vector<TraceEvent> events() && { return std::move(events_); }

private:
    static constexpr std::uint64_t kSend = 1;
    static std::uint32_t low_bits(std::uint64_t command) {
        return static_cast<std::uint32_t>(command & 0xfffff);
    }

    std::vector<TraceEvent> events_;
    std::uint32_t message_ = 0;
    std::uint64_t data_ = 0;
};

}  // namespace

std::vector<TraceEvent> read_recording(const std::string& path) {
    std::ifstream in(path);
    Reader reader;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.starts_with('#')) continue;
        std::istringstream words(line);
        char kind = 0;
        std::uint32_t offset = 0;
        std::uint64_t value = 0;
        words >> kind >> std::hex >> offset >> value;
        if (!words || (kind != 'R' && kind != 'W' && kind != 'D'))
            throw VfError(fmt::format("{}:{}: \"{}\" is no access", path, number, line));
        reader.take(kind == 'R'   ? Kind::Read
                    : kind == 'W' ? Kind::Write
                                  : Kind::Doorbell,
                    offset, value);
    }
    return std::move(reader).events();
}

constexpr std::uint32_t kSdma1RingBase =
    REG_SDMA0_SDMA0_GFX_RB_BASE + std::uint32_t{REG_STRIDE_SDMA0_SDMA0_GFX_RB_BASE};

const std::vector<Milestone>& boot_milestones() {
    static const std::vector<Milestone> milestones{
        access("detect", Kind::Read, REG_NBIO_RCC_IOV_FUNC_IDENTIFIER),
        access("ask for init data", Kind::MailboxSend, MAILBOX_REQ_GPU_INIT_DATA),
        access("init data ready", Kind::MailboxGot, MAILBOX_VF_REQ_GPU_INIT_DATA_READY),
        access("ask for full access", Kind::MailboxSend, MAILBOX_REQ_GPU_INIT_ACCESS),
        access("full access granted", Kind::MailboxGot, MAILBOX_VF_READY_TO_ACCESS_GPU),
        access("IP discovery version", Kind::Read, REG_MP0_IP_DISCOVERY_VERSION),
        access("revision straps", Kind::Read, REG_NBIO_RCC_DEV0_EPF0_STRAP0),
        access("SMC flags", Kind::Read, REG_NBIO_PCIE_DATA2),
        access("VBIOS", Kind::VramRead, VF_VRAM_VBIOS_OFFSET),
        access("PF2VF", Kind::VramRead, VF_VRAM_PF2VF_OFFSET),
        access("VRAM module", Kind::Read, REG_NBIO_BIOS_SCRATCH_4),
        access("VRAM size", Kind::Read, REG_NBIO_RCC_CONFIG_MEMSIZE),
        access("frame buffer location", Kind::Read, REG_MMHUB_MC_VM_FB_LOCATION_BASE),
        access("frame buffer offset", Kind::Read, REG_GC_MC_VM_FB_OFFSET),
        access("HDP flush", Kind::Write, REG_NBIO_HDP_MEM_COHERENCY_FLUSH_CNTL),
        access("GC GART table", Kind::Write, REG_GC_VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32),
        access("GC L1 TLB by RLCG", Kind::RlcgWrite, REG_GC_MC_VM_MX_L1_TLB_CNTL),
        access("GC context 0 on", Kind::Write, REG_GC_VM_CONTEXT0_CNTL),
        access("GC context 15", Kind::Write, REG_GC_VM_CONTEXT0_CNTL + 15),
        access("MMHUB context 0 on", Kind::Write, REG_MMHUB_VM_CONTEXT0_CNTL),
        access("TLB flush, engine 17", Kind::Write, REG_GC_VM_INVALIDATE_ENG0_REQ + 17),
        access("PSP: IH clients", Kind::Write, REG_MP0_MP0_SMN_C2PMSG_64),
        valued("PSP: ring", Kind::Write, REG_MP0_MP0_SMN_C2PMSG_101, PSP_RING_CREATE),
        access("PSP: SETUP_VMR", Kind::PspCommand, PSP_CMD_SETUP_VMR),
        access("PSP: firmware", Kind::PspCommand, PSP_CMD_LOAD_IP_FW),
        access("PSP: IH ring control", Kind::PspCommand, PSP_CMD_PROG_REG),
        access("IH ring", Kind::Write, REG_OSSSYS_IH_RB_BASE),
        access("harvest registers", Kind::Read, REG_GC_CC_GC_SHADER_ARRAY_CONFIG),
        access("apertures of user VMIDs", Kind::RlcgWrite, REG_GC_SH_MEM_BASES),
        access("clear state buffer", Kind::RlcgWrite, REG_GC_RLC_CSIB_ADDR_LO),
        access("KIQ named", Kind::RlcgWrite, REG_GC_RLC_CP_SCHEDULERS),
        valued("KIQ active", Kind::RlcgWrite, REG_GC_CP_HQD_ACTIVE, 1),
        access("gfx ring", Kind::Write, REG_GC_CP_RB0_BASE),
        access("MEC on", Kind::RlcgWrite, REG_GC_CP_MEC_CNTL),
        valued("compute rings: resources", Kind::Packet, PM4_OP_SET_RESOURCES, DOORBELL_KIQ),
        valued("compute rings: map", Kind::Packet, PM4_OP_MAP_QUEUES, DOORBELL_KIQ),
        access("SDMA0", Kind::Write, REG_SDMA0_SDMA0_GFX_RB_BASE),
        access("SDMA1", Kind::Write, kSdma1RingBase),
        valued("HIQ: resources", Kind::Packet, PM4_OP_SET_RESOURCES, DOORBELL_HIQ),
        access("release full access", Kind::MailboxSend, MAILBOX_REL_GPU_INIT_ACCESS),
        valued("IB tests", Kind::Packet, PM4_OP_INDIRECT_BUFFER, DOORBELL_GFX_RING0),
    };
    return milestones;
}

std::string check_order(const std::vector<TraceEvent>& events,
                        const std::vector<Milestone>& milestones) {
    auto earliest = events.begin();
    for (const auto& milestone : milestones) {
        const auto found = std::find_if(earliest, events.end(), milestone.is_it);
        if (found == events.end()) {
            const bool came_early = std::any_of(events.begin(), earliest, milestone.is_it);
            return fmt::format("\"{}\" {}", milestone.name,
                               came_early ? "came only before its place" : "was not seen");
        }
        earliest = found + 1;
    }
    return {};
}

}  // namespace vgpu::test
