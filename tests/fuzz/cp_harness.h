// SPDX-License-Identifier: MIT
//
// CpHarness: a VF for fuzzing its command processor. Memory is a small arena that repeats through
// the whole address space, so that random addresses find memory. Addresses with bit 47 fault. The
// input is copied into the arena and into the ring of one queue. With any input, the command
// processor may only count, interrupt, halt and write the arena.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/command_processor.h"
#include "pf-driver/softgpu/regs/register_file.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::fuzz {

using namespace softgpu;

inline constexpr std::size_t kArena = 256 * 1024;
inline constexpr std::uint64_t kRing = 64 * 1024;
inline constexpr std::uint32_t kRingDwords = 4096;
inline constexpr std::uint32_t kInstructions = 64;  // limit of a group each time a worker takes it

class RepeatingPort final : public mem::Port {
public:
    RepeatingPort(std::vector<std::byte>& arena, const std::atomic<std::uint64_t>& epoch)
        : Port(epoch), arena_(arena) {}

protected:
    Translation walk(GpuVa va, mem::Access access) override {
        Translation out;
        if (bit(raw(va), 47)) {
            out.fault = {mem::FaultKind::NotPresent, access, va};
            return out;
        }
        out.host = arena_.data() + raw(va) / kPageBytes * kPageBytes % kArena;
        out.access = static_cast<std::uint8_t>(mem::Access::Execute) |
                     static_cast<std::uint8_t>(mem::Access::Read) |
                     static_cast<std::uint8_t>(mem::Access::Write);
        return out;
    }
    bool read_indirect(GpuVa, std::span<std::byte>) override { return false; }
    bool write_indirect(GpuVa, std::span<const std::byte>) override { return false; }

private:
    std::vector<std::byte>& arena_;
};

class CpHarness final : public cp::Services, isa::MessageSink {
public:
    /// Copies `memory` to address 0 and `packets` into the ring; each is cut to the space it has.
    CpHarness(std::span<const std::uint8_t> memory, std::span<const std::uint8_t> packets) {
        const std::size_t in_ring = std::min<std::size_t>(packets.size(), kRingDwords * 4);
        std::memcpy(arena_.data(), memory.data(), std::min<std::size_t>(memory.size(), kRing));
        std::memcpy(arena_.data() + kRing, packets.data(), in_ring);
        dwords_ = in_ring / 4;
    }

    enum class Kind : std::uint8_t { Kiq, User, Aql };
    /// Maps a queue by registers; its ring holds the packets.
    void start(Kind kind) {
        const std::uint32_t size = 11;  // 2 << 11 dwords
        const bool is_kernel = kind == Kind::Kiq;
        write(REG_GC_GRBM_GFX_CNTL, HW_PREP(GRBM_GFX_CNTL, ME, is_kernel ? 2 : 1));
        write(REG_GC_CP_HQD_PQ_BASE, kRing >> 8);
        write(REG_GC_CP_HQD_VMID, is_kernel ? 0 : 8);
        write(REG_GC_CP_HQD_PQ_CONTROL, HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, size) |
                                            HW_PREP(CP_HQD_PQ_CONTROL, PRIV_STATE, is_kernel));
        write(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR, 0x1080);
        write(REG_GC_CP_HQD_AQL_CONTROL, kind == Kind::Aql ? 1 : 0);
        write(REG_GC_CP_HQD_PERSISTENT_STATE, HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
        write(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO, 0x8000);
        write(REG_GC_CP_HQD_CTX_SAVE_SIZE, 0x8000);
        write(REG_GC_CP_HQD_CNTL_STACK_SIZE, 0x1000);
        write(REG_GC_CP_HQD_CNTL_STACK_OFFSET, 0x1000);
        write(REG_GC_CP_HQD_WG_STATE_OFFSET, 0x1000);
        const std::uint64_t units = kind == Kind::Aql ? dwords_ * 4 / AQL_PACKET_BYTES : dwords_;
        write(REG_GC_CP_HQD_PQ_WPTR_LO, low32(units));
        write(REG_GC_CP_HQD_ACTIVE, 1);
    }
    /// Runs the queue for a bounded time, with a world switch in the middle, and then dequeues it.
    void live() {
        constexpr int kSteps = 64;
        for (int i = 0; i < kSteps; ++i) {
            const bool has_moved = cp_.step() == StepResult::Progress;
            (void)cp_.has_work();
            clock_.advance(std::chrono::milliseconds(20));
            if (!run_group() && !has_moved && i > kSteps / 2) break;
            if (i == kSteps / 2) switch_world();
        }
        write(REG_GC_CP_HQD_DEQUEUE_REQUEST, 1);
        for (int i = 0; i < kSteps; ++i) (void)cp_.step();
        cp_.reset();
    }

private:
    void write(hw_reg which, std::uint32_t value) {
        registers_.write(RegisterIndex{static_cast<std::uint32_t>(which)}, value);
    }
    bool run_group() {
        stop_ = false;
        const auto lease = cp_.take_group(0, stop_);
        if (!lease) return false;
        const isa::RunResult result = isa::run(
            *lease->group,
            {*lease->port, *lease->cache, clock_, *this, stop_, kInstructions, lease->apertures});
        cp_.release(*lease, result, messages_);
        messages_.clear();
        return true;
    }
    void switch_world() {
        std::vector<std::byte> stream;
        stream.reserve(1u << 17);
        Writer out(stream);
        cp_.save(out);
        cp_.poison();
        Reader in(stream);
        if (!cp_.load(in)) __builtin_trap();  // what was saved must load
    }

    std::unique_ptr<mem::Port> make_port(Vmid) override {
        return std::make_unique<RepeatingPort>(arena_, epoch_);
    }
    void set_process(Vmid, std::uint64_t, std::uint16_t) override {}
    std::uint16_t pasid_of(Vmid) const override { return 1; }
    void invalidate_pasid(std::uint16_t) override {}
    void report_fault(Vmid, const mem::Fault&) override {}
    void raise(const ih_iv_entry&) override {}
    bool map_sdma(cp::SdmaEngine, const sdma::MapRequest&) override { return ++sdma_ % 3 != 0; }
    void unmap_sdma(cp::SdmaEngine, DoorbellIndex) override {}
    void work_arrived() override {}
    void interrupt(std::uint32_t payload) override { messages_.push_back(payload); }

    std::vector<std::byte> arena_ = std::vector<std::byte>(kArena);
    std::atomic<std::uint64_t> epoch_{1};
    std::atomic<bool> stop_{false};
    std::size_t dwords_ = 0;
    unsigned sdma_ = 0;
    cp::Messages messages_;
    VirtualClock clock_;
    regs::RegisterFile registers_{regs::Role::Vf};
    cp::CommandProcessor cp_{{.compute_units = 1}, registers_, *this, clock_};
};

}  // namespace vgpu::fuzz
