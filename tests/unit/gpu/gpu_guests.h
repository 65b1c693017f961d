// SPDX-License-Identifier: MIT
//
// The work of a guest's driver, in VF VRAM: a chain of SDMA copies, and packets and kernels on the
// gfx ring.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/sdma.h"
#include "tests/unit/gpu/gpu_rig.h"

namespace vgpu::softgpu::test {

inline constexpr std::uint32_t kMegabytes = 16;
inline constexpr std::uint64_t kFirstVram = 32u << 20;
inline constexpr std::uint64_t kRing = 1u << 20;  // VF VRAM offsets
inline constexpr std::uint64_t kRptr = 2u << 20;
inline constexpr std::uint64_t kGfxRing = 3u << 20;
inline constexpr std::uint64_t kGfxRptr = kRptr + 4096;
inline constexpr std::uint64_t kData = 4u << 20;
inline constexpr std::uint32_t kRingLog2 = 14;  // dwords
inline constexpr std::uint32_t kCopyBytes = 4096;
inline constexpr std::uint32_t kCopyDwords = 7;
inline constexpr std::uint64_t kMcBase = std::uint64_t{GPUVM_FB_LOCATION_BASE}
                                         << GPUVM_FB_LOCATION_SHIFT;

/// The kernel ring of SDMA0 as a driver sets it up during full access.
class SdmaGuest {
public:
    explicit SdmaGuest(VfClient& vf) : vf_(vf) {
        const std::uint64_t ring = (kMcBase + kRing) >> 8;
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_BASE, low32(ring));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_BASE_HI, high32(ring));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO, low32(kMcBase + kRptr));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI, high32(kMcBase + kRptr));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET,
                    HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, DOORBELL_SDMA0));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_DOORBELL, HW_PREP(SDMA_DOORBELL, ENABLE, 1));
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_IB_CNTL, 1);
        vf_.set_reg(REG_SDMA0_SDMA0_GFX_RB_CNTL,
                    HW_PREP(SDMA_RB_CNTL, RB_ENABLE, 1) |
                        HW_PREP(SDMA_RB_CNTL, RB_SIZE, kRingLog2) |
                        HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1));
    }

    /// Copies block i to block i + 1, for i in [0, count).
    void submit_chain(std::uint32_t count) { vf_.ring(DOORBELL_SDMA0, put_chain(count)); }
    /// Behind the chains before it. Leaves the ring to others; its write pointer.
    std::uint64_t put_chain(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t from = kMcBase + kData + std::uint64_t{i} * kCopyBytes;
            const std::uint64_t to = from + kCopyBytes;
            for (const std::uint32_t dword : {std::uint32_t{SDMA_OP_COPY}, kCopyBytes - 1, 0u,
                                              low32(from), high32(from), low32(to), high32(to)})
                packets_.push_back(dword);
        }
        vf_.write(VGPU_BAR_VRAM, kRing, std::as_bytes(std::span(packets_)));
        end_ = packets_.size() * sizeof(std::uint32_t);
        return end_;
    }
    [[nodiscard]] bool is_done() { return vf_.vram<std::uint64_t>(kRptr) == end_; }
    std::uint32_t word(std::uint32_t block, std::uint32_t offset) {
        return vf_.vram<std::uint32_t>(kData + std::uint64_t{block} * kCopyBytes + offset);
    }
    void fill_first_block(std::uint32_t seed) {
        std::vector<std::uint32_t> words(kCopyBytes / 4);
        for (std::uint32_t& word : words) word = seed = seed * 1664525u + 1013904223u;
        vf_.write(VGPU_BAR_VRAM, kData, std::as_bytes(std::span(words)));
        first_ = words;
    }
    void expect_block(std::uint32_t block) {
        std::vector<std::uint32_t> words(kCopyBytes / 4);
        vf_.read(VGPU_BAR_VRAM, kData + std::uint64_t{block} * kCopyBytes,
                 std::as_writable_bytes(std::span(words)));
        EXPECT_EQ(words, first_);
    }

private:
    VfClient& vf_;
    std::uint64_t end_ = 0;
    std::vector<std::uint32_t> packets_;
    std::vector<std::uint32_t> first_;
};

/// The gfx ring, as a driver sets it up during full access, and a kernel of one wave that stores a
/// number.
class GfxGuest {
public:
    explicit GfxGuest(VfClient& vf) : vf_(vf) {
        vf_.set_reg(REG_GC_CP_RB0_CNTL, HW_PREP(CP_RB0_CNTL, RB_BUFSZ, kRingLog2 - 1));
        vf_.set_reg(REG_GC_CP_RB0_WPTR, 0);
        vf_.set_reg(REG_GC_CP_RB0_WPTR_HI, 0);
        vf_.set_reg(REG_GC_CP_RB0_RPTR_ADDR, low32(kMcBase + kGfxRptr));
        vf_.set_reg(REG_GC_CP_RB0_RPTR_ADDR_HI, high32(kMcBase + kGfxRptr));
        vf_.set_reg(REG_GC_CP_RB0_BASE, low32((kMcBase + kGfxRing) >> 8));
        vf_.set_reg(REG_GC_CP_RB0_BASE_HI, high32((kMcBase + kGfxRing) >> 8));
        vf_.set_reg(REG_GC_CP_RB_DOORBELL_CONTROL,
                    HW_PREP(CP_RB_DOORBELL_CONTROL, OFFSET, DOORBELL_GFX_RING0) |
                        HW_PREP(CP_RB_DOORBELL_CONTROL, ENABLE, 1));
    }
    void put_code(std::uint16_t number) {
        const std::array<std::uint32_t, 4> code{
            0xb0040000u | number,    // s_movk_i32 s4, number
            0xc0420100, 0x00000000,  // s_store_dword s4, s[0:1], 0x0
            0xbf810000,              // s_endpgm
        };
        vf_.write(VGPU_BAR_VRAM, kCode, std::as_bytes(std::span(code)));
    }
    /// One lane stores 8 bytes.
    void store_by_wave(std::uint64_t va, std::uint64_t value) {
        const std::array<std::uint32_t, 8> code{
            0xbefe0181,                                      // s_mov_b64 exec, 1
            0x7e000200, 0x7e020201, 0x7e040202, 0x7e060203,  // v_mov_b32 v0..v3, s0..s3
            0xdc748000, 0x007f0200,                          // global_store_dwordx2 v[0:1], v[2:3]
            0xbf810000,                                      // s_endpgm
        };
        vf_.write(VGPU_BAR_VRAM, kCode, std::as_bytes(std::span(code)));
        dispatch({low32(va), high32(va), low32(value), high32(value)});
    }
    [[nodiscard]] std::uint64_t ring_dwords() const { return ring_.size(); }
    void store_by_packet(std::uint64_t va, std::uint64_t value) {
        add(PM4_OP_WRITE_DATA, {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), low32(va),
                                high32(va), low32(value), high32(value)});
        submit();
    }
    /// A store by packet that does not arrive.
    void expect_fault(std::uint64_t va, const std::function<bool()>& is_seen) {
        add(PM4_OP_WRITE_DATA,
            {HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY), low32(va), high32(va), 1});
        vf_.write(VGPU_BAR_VRAM, kGfxRing, std::as_bytes(std::span(ring_)));
        vf_.ring(DOORBELL_GFX_RING0, ring_.size());
        EXPECT_TRUE(eventually(is_seen));
    }
    /// The time of the end of the work before it, in ticks of the device's clock.
    std::uint64_t timestamp() {
        constexpr std::uint64_t va = kMcBase + kStamp;
        add(PM4_OP_RELEASE_MEM, {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, PM4_RELEASE_GPU_CLOCK),
                                 low32(va), high32(va), 0, 0});
        submit();
        return vf_.vram<std::uint64_t>(kStamp);
    }
    void store_by_fence(std::uint64_t va, std::uint64_t value) {
        add(PM4_OP_RELEASE_MEM, {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, PM4_RELEASE_DATA_64),
                                 low32(va), high32(va), low32(value), high32(value)});
        submit();
    }
    /// A wave that jumps to itself, for ever.
    void start_endless() {
        const std::array<std::uint32_t, 2> code{0xbf82ffff, 0xbf810000};  // s_branch -1, s_endpgm
        vf_.write(VGPU_BAR_VRAM, kCode, std::as_bytes(std::span(code)));
        put_dispatch({0, 0, 0, 0});
        vf_.write(VGPU_BAR_VRAM, kGfxRing, std::as_bytes(std::span(ring_)));
        vf_.ring(DOORBELL_GFX_RING0, ring_.size());
    }
    /// What the kernel has stored when the fence behind it has come.
    std::uint32_t dispatch() {
        dispatch({low32(kMcBase + kData), high32(kMcBase + kData), 0, 0});
        return vf_.vram<std::uint32_t>(kData);
    }

private:
    static constexpr std::uint64_t kCode = 5u << 20;
    static constexpr std::uint64_t kFence = 6u << 20;
    static constexpr std::uint64_t kStamp = kFence + 4096;

    void dispatch(const std::vector<std::uint32_t>& user_data) {
        put_dispatch(user_data);
        submit();
    }
    void put_dispatch(const std::vector<std::uint32_t>& user_data) {
        constexpr std::uint64_t entry = (kMcBase + kCode) >> 8;
        set(REG_GC_COMPUTE_PGM_LO, {low32(entry), high32(entry)});
        set(REG_GC_COMPUTE_PGM_RSRC1, {0, HW_PREP(COMPUTE_PGM_RSRC2, USER_SGPR, 4)});
        set(REG_GC_COMPUTE_NUM_THREAD_X, {64, 1, 1});
        set(REG_GC_COMPUTE_USER_DATA_0, user_data);
        add(PM4_OP_DISPATCH_DIRECT,
            {1, 1, 1, HW_PREP(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, 1)});
    }
    void submit() {
        add(PM4_OP_RELEASE_MEM, {0, HW_PREP(RELEASE_MEM_2, DATA_SEL, PM4_RELEASE_DATA_32),
                                 low32(kMcBase + kFence), high32(kMcBase + kFence), ++fence_, 0});
        vf_.write(VGPU_BAR_VRAM, kGfxRing, std::as_bytes(std::span(ring_)));
        vf_.ring(DOORBELL_GFX_RING0, ring_.size());
        EXPECT_TRUE(eventually([&] { return vf_.vram<std::uint32_t>(kFence) == fence_; }));
    }
    void add(pm4_opcode opcode, const std::vector<std::uint32_t>& body) {
        ring_.push_back(PM4_HEADER_OF(opcode, static_cast<std::uint32_t>(body.size())));
        ring_.insert(ring_.end(), body.begin(), body.end());
    }
    void set(hw_reg first, std::vector<std::uint32_t> values) {
        values.insert(values.begin(), static_cast<std::uint32_t>(first) - HW_REG_BASE_SH);
        add(PM4_OP_SET_SH_REG, values);
    }

    VfClient& vf_;
    std::vector<std::uint32_t> ring_;
    std::uint32_t fence_ = 0;
};

}  // namespace vgpu::softgpu::test
