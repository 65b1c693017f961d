// SPDX-License-Identifier: MIT
#include "tests/unit/sdma/sdma_rig.h"

#include "pf-driver/hw/doorbell.h"

namespace vgpu::softgpu::test {

using softgpu::mem::kFbBase;

Dwords operator+(Dwords a, const Dwords& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::uint32_t header(std::uint32_t op, std::uint32_t sub_op) {
    return HW_PREP(SDMA_HEADER, OP, op) | HW_PREP(SDMA_HEADER, SUB_OP, sub_op);
}

Dwords copy_linear(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    return {header(SDMA_OP_COPY),
            static_cast<std::uint32_t>(bytes - 1),
            0,
            low32(from),
            high32(from),
            low32(to),
            high32(to)};
}

Dwords write_linear(std::uint64_t to, const Dwords& data) {
    return Dwords{header(SDMA_OP_WRITE), low32(to), high32(to),
                  static_cast<std::uint32_t>(data.size() - 1)} +
           data;
}

Dwords fence(std::uint64_t address, std::uint32_t value) {
    return {header(SDMA_OP_FENCE), low32(address), high32(address), value};
}

Dwords trap(std::uint32_t context) {
    return {header(SDMA_OP_TRAP), context};
}

Dwords poll_memory(std::uint64_t address, std::uint32_t function, std::uint32_t reference,
                   std::uint32_t mask, std::uint32_t retries) {
    return {header(SDMA_OP_POLL_REGMEM) | HW_PREP(SDMA_POLL_REGMEM, FUNCTION, function) |
                HW_PREP(SDMA_POLL_REGMEM, MEM_POLL, 1),
            low32(address),
            high32(address),
            reference,
            mask,
            HW_PREP(SDMA_POLL_REGMEM_5, RETRY_COUNT, retries)};
}

Dwords poll_register(std::uint32_t index, std::uint32_t function, std::uint32_t reference,
                     std::uint32_t mask) {
    return {header(SDMA_OP_POLL_REGMEM) | HW_PREP(SDMA_POLL_REGMEM, FUNCTION, function),
            index * 4,
            0,
            reference,
            mask,
            HW_PREP(SDMA_POLL_REGMEM_5, RETRY_COUNT, SDMA_POLL_FOREVER)};
}

Dwords fill(std::uint64_t to, std::uint32_t value, std::uint32_t size, std::uint32_t count) {
    return {header(SDMA_OP_CONST_FILL) | HW_PREP(SDMA_CONST_FILL, FILL_SIZE, size), low32(to),
            high32(to), value, count};
}

Dwords atomic(std::uint32_t operation, std::uint64_t address, std::uint64_t source,
              std::uint64_t compare, std::uint32_t loop) {
    return {header(SDMA_OP_ATOMIC) | HW_PREP(SDMA_ATOMIC, OPERATION, operation) |
                HW_PREP(SDMA_ATOMIC, LOOP, loop),
            low32(address),
            high32(address),
            low32(source),
            high32(source),
            low32(compare),
            high32(compare),
            0};
}

Dwords indirect(std::uint64_t address, std::uint32_t dwords, std::uint32_t vmid) {
    return {header(SDMA_OP_INDIRECT) | HW_PREP(SDMA_INDIRECT, VMID, vmid),
            low32(address),
            high32(address),
            dwords,
            0,
            0};
}

Dwords register_write(std::uint32_t index, std::uint32_t value, std::uint32_t byte_enables) {
    return {header(SDMA_OP_SRBM_WRITE) | HW_PREP(SDMA_SRBM_WRITE, BYTE_EN, byte_enables), index,
            value};
}

SdmaRig::SdmaRig(unsigned engine_index) : user_root(mem.new_table()), index_(engine_index) {
    mem.enable_context(raw(kUserVmid), user_root);
    for (std::uint64_t at = 0; at < kUserBytes; at += 4096)
        mem.map_page(user_root, kUserBase + at, (kUserVram + at) | kRwx);
    mem.gpuvm->set_pasid(kUserVmid, kUserPasid);
    ports = std::make_unique<softgpu::mem::PortSet>(*mem.gpuvm, softgpu::mem::Hub::Mm);
    sdma::Engine::Hooks hooks;
    hooks.raise = [this](const ih_iv_entry& entry) { interrupts.push_back(entry); };
    hooks.fault = [this](const softgpu::mem::VmFault& fault) { faults.push_back(fault); };
    hooks.port = [this](Vmid vmid) -> softgpu::mem::Port& { return (*ports)(vmid); };
    engine = std::make_unique<sdma::Engine>(engine_index, mem.regs, clock, hooks);
    mem.write_reg(reg(REG_SDMA0_SDMA0_CNTL), HW_PREP(SDMA_CNTL, TRAP_ENABLE, 1));
}

std::uint32_t SdmaRig::reg(std::uint32_t engine0_register) const {
    return engine0_register + index_ * REG_STRIDE_SDMA0_SDMA0_CNTL;
}

void SdmaRig::enable_kernel_ring() {
    const std::uint64_t base = kFbBase + kKernelRing;
    const std::uint64_t report = kFbBase + kKernelReport;
    const std::uint32_t control =
        HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2) | HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1);
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), control);
    for (const std::uint32_t pointer :
         {REG_SDMA0_SDMA0_GFX_RB_RPTR, REG_SDMA0_SDMA0_GFX_RB_RPTR_HI, REG_SDMA0_SDMA0_GFX_RB_WPTR,
          REG_SDMA0_SDMA0_GFX_RB_WPTR_HI})
        mem.write_reg(reg(pointer), 0);
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI), high32(report));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO), low32(report));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_BASE), low32(base >> 8));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_BASE_HI), high32(base >> 8));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_DOORBELL), HW_PREP(SDMA_DOORBELL, ENABLE, 1));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET),
                  HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, DOORBELL_SDMA0));
    mem.write_reg(reg(REG_SDMA0_SDMA0_GFX_RB_CNTL), control | HW_PREP(SDMA_RB_CNTL, RB_ENABLE, 1));
    kernel_wptr_ = 0;
}

void SdmaRig::submit(const Dwords& packets) {
    for (const std::uint32_t dword : packets) {
        mem.put(kKernelRing + kernel_wptr_ % kRingBytes, dword);
        kernel_wptr_ += 4;
    }
    engine->doorbell(DoorbellIndex{DOORBELL_SDMA0}, kernel_wptr_);
}

bool SdmaRig::map_user(unsigned which) {
    Dwords mqd(SDMA_MQD_DWORDS);
    const std::uint64_t ring = kUserRing + which * kUserQueueStride;
    const std::uint64_t report = kUserReport + which * kUserQueueStride;
    mqd[SDMA_MQD_RB_CNTL] = HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2);
    mqd[SDMA_MQD_RB_BASE] = low32(ring >> 8);
    mqd[SDMA_MQD_RB_BASE_HI] = high32(ring >> 8);
    mqd[SDMA_MQD_RPTR_ADDR_LO] = low32(report);
    mqd[SDMA_MQD_RPTR_ADDR_HI] = high32(report);
    for (std::size_t i = 0; i < mqd.size(); ++i) mem.put(mqd_of(which) + 4 * i, mqd[i]);
    put_user<std::uint64_t>(kUserWptr + which * kUserQueueStride, 0);
    user_wptr_[which] = 0;
    return engine->map({GpuVa{kFbBase + mqd_of(which)}, doorbell_of(which),
                        GpuVa{kUserWptr + which * kUserQueueStride}, kUserVmid, kUserPasid});
}

void SdmaRig::submit_user(const Dwords& packets, unsigned which) {
    for (const std::uint32_t dword : packets) {
        put_user(kUserRing + which * kUserQueueStride + user_wptr_[which] % kRingBytes, dword);
        user_wptr_[which] += 4;
    }
    put_user(kUserWptr + which * kUserQueueStride, user_wptr_[which]);
    engine->doorbell(doorbell_of(which), user_wptr_[which]);
}

StepResult SdmaRig::run(StepBudget budget) {
    for (int i = 0; i < 100000; ++i) {
        const StepResult result = engine->step(budget);
        if (result != StepResult::Progress) return result;
    }
    ADD_FAILURE() << "the engine never comes to rest";
    return StepResult::Progress;
}

}  // namespace vgpu::softgpu::test
