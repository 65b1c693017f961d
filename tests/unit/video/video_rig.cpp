// SPDX-License-Identifier: MIT
#include "tests/unit/video/video_rig.h"

#include "pf-driver/hw/doorbell.h"

namespace vgpu::softgpu::video::test {

using softgpu::mem::kFbBase;

namespace {

constexpr std::uint32_t kPadding = 64;

std::uint64_t ring_offset(Encoder encoder) {
    return encoder == Encoder::Uvd ? 0x130000 : 0x140000;
}

std::uint32_t head(mmsch_command command, std::uint32_t reg) {
    return HW_PREP(MMSCH_HEADER, COMMAND, command) | HW_PREP(MMSCH_DIRECT, REGISTER, reg);
}

Dwords ring_commands(Encoder encoder) {
    const EncoderRow& row = row_of(encoder);
    const std::uint64_t base = kFbBase + ring_offset(encoder);
    return direct_write(row.base_lo, low32(base)) + direct_write(row.base_hi, high32(base)) +
           direct_write(row.size, kRingDwords);
}

}  // namespace

Dwords operator+(Dwords a, const Dwords& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

Dwords direct_write(std::uint32_t reg, std::uint32_t value) {
    return {head(MMSCH_COMMAND_DIRECT_WRITE, reg), value};
}

Dwords modify(std::uint32_t reg, std::uint32_t mask, std::uint32_t data) {
    return {head(MMSCH_COMMAND_DIRECT_READ_MODIFY_WRITE, reg), data, mask};
}

Dwords poll(std::uint32_t reg, std::uint32_t mask, std::uint32_t value) {
    return {head(MMSCH_COMMAND_DIRECT_POLLING, reg), mask, value};
}

Dwords end_of_table() {
    return {head(MMSCH_COMMAND_END, 0)};
}

Dwords driver_list(Encoder encoder) {
    if (encoder == Encoder::Vce)
        return ring_commands(encoder) + modify(REG_VCE_VCE_SYS_INT_EN, 8, 8) +
               modify(REG_VCE_VCE_STATUS, 1, ~1u) + modify(REG_VCE_VCE_VCPU_CNTL, ~0x200001u, 1) +
               modify(REG_VCE_VCE_SOFT_RESET, ~1u, 0) + poll(REG_VCE_VCE_STATUS, 2, 2) +
               modify(REG_VCE_VCE_STATUS, ~1u, 0) + end_of_table();
    return modify(REG_UVD_UVD_STATUS, ~0u, 4) + direct_write(REG_UVD_UVD_SOFT_RESET, 0x2ac6 | 8) +
           direct_write(REG_UVD_UVD_SOFT_RESET, 8) + direct_write(REG_UVD_UVD_VCPU_CNTL, 0x200) +
           modify(REG_UVD_UVD_MASTINT_EN, ~6u, 6) + modify(REG_UVD_UVD_STATUS, ~4u, 0) +
           ring_commands(encoder) + direct_write(REG_UVD_UVD_SOFT_RESET, 0) +
           poll(REG_UVD_UVD_STATUS, 2, 2) + end_of_table();
}

Dwords table_of(const Dwords& uvd, const Dwords& vce) {
    const auto uvd_dwords = static_cast<std::uint32_t>(uvd.size());
    const auto vce_dwords = static_cast<std::uint32_t>(vce.size());
    const std::uint32_t uvd_offset = uvd.empty() ? 0 : MMSCH_HEADER_DWORDS;
    const std::uint32_t vce_offset = vce.empty() ? 0 : MMSCH_HEADER_DWORDS + uvd_dwords;
    const Dwords header{MMSCH_VERSION, MMSCH_HEADER_DWORDS, 0,          0,
                        vce_offset,    vce_dwords,          uvd_offset, uvd_dwords};
    return header + uvd + vce;
}

Dwords no_ops(unsigned count) {
    return Dwords(count, VIDEO_PACKET_NO_OP);
}

Dwords job(Vmid vmid, std::uint64_t address, std::uint32_t dwords) {
    return {VIDEO_PACKET_IB_VM, raw(vmid), low32(address), high32(address), dwords};
}

Dwords fence(std::uint64_t address, std::uint32_t value) {
    return {VIDEO_PACKET_FENCE, low32(address),  high32(address), value,
            VIDEO_PACKET_TRAP,  VIDEO_PACKET_END};
}

Dwords write_register(std::uint32_t reg, std::uint32_t value) {
    return {VIDEO_PACKET_REG_WRITE, reg * 4, value};
}

Dwords wait_register(std::uint32_t reg, std::uint32_t mask, std::uint32_t value) {
    return {VIDEO_PACKET_REG_WAIT, reg * 4, mask, value};
}

VideoRig::VideoRig() : ports(std::make_unique<mem::PortSet>(*memory.gpuvm, mem::Hub::Mm)) {
    const std::uint64_t root = memory.new_table();
    memory.enable_context(raw(kUserVmid), root);
    memory.map_page(root, kUserPage, kUserVram | softgpu::test::kRwx);
    Engine::Hooks hooks;
    hooks.raise = [this](const ih_iv_entry& entry) {
        interrupts.push_back(entry);
        if (on_interrupt) on_interrupt();
    };
    hooks.fault = [this](const mem::VmFault& fault) { faults.push_back(fault); };
    hooks.port = [this](Vmid vmid) -> mem::Port& {
        return kernel_port != nullptr && raw(vmid) == 0 ? *kernel_port : (*ports)(vmid);
    };
    hooks.is_gate_open = [this] { return is_gate_open; };
    engine = std::make_unique<Engine>(memory.regs, hooks);
}

std::uint32_t VideoRig::hand_over(const Dwords& table) {
    return hand_over(table, static_cast<std::uint32_t>(table.size()));
}

std::uint32_t VideoRig::hand_over(const Dwords& table, std::uint32_t ctx_dwords) {
    put_job(kTable, table);
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_LO, low32(kFbBase + kTable));
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_ADDR_HI, high32(kFbBase + kTable));
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_VMID, 0);
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_CTX_SIZE, ctx_dwords);
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP, 0);
    memory.write_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_HOST, MMSCH_HOST_INIT);
    return memory.read_reg(REG_VCE_VCE_MMSCH_VF_MAILBOX_RESP);
}

void VideoRig::bring_up() {
    const Dwords uvd = driver_list(Encoder::Uvd);
    EXPECT_EQ(hand_over(table_of(uvd, {})), MMSCH_RESPONSE_DONE);
    EXPECT_EQ(hand_over(table_of(uvd, driver_list(Encoder::Vce))), MMSCH_RESPONSE_DONE);
    write_pointers_ = {};
}

void VideoRig::submit(Encoder encoder, const Dwords& packets) {
    const std::uint32_t at = write_pointers_[static_cast<std::size_t>(encoder)];
    const auto used = static_cast<std::uint32_t>((at + packets.size()) % kPadding);
    submit_bare(encoder, packets + no_ops((kPadding - used) % kPadding));
}

void VideoRig::submit_bare(Encoder encoder, const Dwords& packets) {
    std::uint32_t& at = write_pointers_[static_cast<std::size_t>(encoder)];
    for (const std::uint32_t dword : packets) {
        memory.put(ring_offset(encoder) + at * 4ull, dword);
        at = (at + 1) % kRingDwords;
    }
    engine->doorbell(DoorbellIndex{row_of(encoder).doorbell}, at);
}

void VideoRig::put_job(std::uint64_t vram_offset, const Dwords& dwords) {
    for (std::size_t i = 0; i < dwords.size(); ++i) memory.put(vram_offset + i * 4, dwords[i]);
}

StepResult VideoRig::run() {
    for (int i = 0; i < 10000; ++i) {
        const StepResult result = engine->step();
        if (result != StepResult::Progress) return result;
    }
    ADD_FAILURE() << "the engine never comes to rest";
    return StepResult::Progress;
}

}  // namespace vgpu::softgpu::video::test
