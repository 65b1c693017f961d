// SPDX-License-Identifier: MIT
//
// ModelGpu's bulk operations (enum vgpu_hw_op: scrub, verify, save and load state, DMA). Each ends
// after `bulk_ns`. The model assumes that ranges of VRAM begin at multiples of kVramPage and,
// except for DMA, also end there.
#include "daemon/simulator/model_gpu.h"

#include <algorithm>
#include <cstring>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

namespace vgpu::simulator {

void ModelGpu::start_bulk(std::uint32_t command) {
    if (op_busy_) return;
    op_busy_ = true;
    at(now_ + bulk_ns, [this, command] {
        op_busy_ = false;
        op_refused_ = !do_bulk(HW_GET(VGPU_OP_COMMAND, OPCODE, command),
                               HW_GET(VGPU_OP_COMMAND, VF, command));
    });
}

/// Does a bulk operation for VF `number`. False if the device refuses the operation. SAVE_STATE
/// passes 0 bytes to dma_memory(), because save_state() itself checks the size and reports the
/// required size.
bool ModelGpu::do_bulk(std::uint32_t opcode, std::uint32_t number) {
    const std::uint64_t src = pair(REG_VGPU_OP_SRC_LO);
    const std::uint64_t dst = pair(REG_VGPU_OP_DST_LO);
    const std::uint64_t bytes = pair(REG_VGPU_OP_SIZE_LO);
    switch (opcode) {
        case VGPU_OP_SCRUB_VRAM:
            scrub_vram(number, dst, bytes);
            return true;
        case VGPU_OP_VERIFY_ZERO:
            return is_zero(number, src, bytes) && !verify_fails;
        case VGPU_OP_SCRUB_STATE:
            vfs_[number].work_ns = 0;
            return true;
        case VGPU_OP_SAVE_STATE:
            return save_state(number, dma_memory(dst, 0), bytes);
        case VGPU_OP_LOAD_STATE:
            return dma_memory(src, bytes) != nullptr && bytes == state_bytes;
        case VGPU_OP_DMA_OUT: {
            std::uint8_t* out = dma_memory(dst, bytes);
            if (out != nullptr) copy_out(number, src, {out, bytes});
            return out != nullptr;
        }
        case VGPU_OP_DMA_IN: {
            const std::uint8_t* in = dma_memory(src, bytes);
            if (in != nullptr) copy_in(number, dst, {in, bytes});
            return in != nullptr;
        }
        default:
            return false;
    }
}

std::uint8_t* ModelGpu::dma_memory(std::uint64_t bus, std::uint64_t bytes) {
    auto block = dma_.upper_bound(bus);
    if (block == dma_.begin()) return nullptr;
    --block;
    const std::uint64_t inside = bus - block->first;
    if (inside + bytes > block->second->size() * 8) return nullptr;
    return static_cast<std::uint8_t*>(static_cast<void*>(block->second->data())) + inside;
}

void ModelGpu::scrub_vram(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += kVramPage)
        vram_.erase(in_device(vf, offset + at) / kVramPage);
}

bool ModelGpu::is_zero(std::uint32_t vf, std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += kVramPage) {
        const auto page = vram_.find(in_device(vf, offset + at) / kVramPage);
        if (page != vram_.end() &&
            std::ranges::any_of(*page->second, [](std::uint8_t b) { return b != 0; }))
            return false;
    }
    return true;
}

bool ModelGpu::save_state(std::uint32_t vf, std::uint8_t* out, std::uint64_t bytes) {
    regs_[REG_VGPU_OP_SIZE_LO] = state_bytes;
    regs_[REG_VGPU_OP_SIZE_HI] = 0;
    if (out == nullptr || bytes < state_bytes) return false;
    // any pattern that differs between VFs; LOAD_STATE does not check the bytes
    std::memset(out, static_cast<int>(0x40 + vf), state_bytes);
    return true;
}

void ModelGpu::copy_out(std::uint32_t vf, std::uint64_t offset, std::span<std::uint8_t> out) {
    for (std::uint64_t at = 0; at < out.size(); at += kVramPage) {
        const auto page = vram_.find(in_device(vf, offset + at) / kVramPage);
        const auto piece = out.subspan(at, std::min(kVramPage, out.size() - at));
        if (page == vram_.end())
            std::ranges::fill(piece, std::uint8_t{0});
        else
            std::copy_n(page->second->begin(), piece.size(), piece.begin());
    }
}

void ModelGpu::copy_in(std::uint32_t vf, std::uint64_t offset, std::span<const std::uint8_t> in) {
    for (std::uint64_t at = 0; at < in.size(); at += kVramPage)
        write_vram(in_device(vf, offset + at), in.subspan(at, std::min(kVramPage, in.size() - at)));
}

}  // namespace vgpu::simulator
