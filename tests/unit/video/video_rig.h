// SPDX-License-Identifier: MIT
//
// VideoRig: the video blocks of one VF over the real memory path, and what amdgpu does with them:
// init table, hand-over, ring submissions, jobs. Tables are vectors of dwords, so that a test can
// break any of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "pf-driver/hw/mmsch.h"
#include "pf-driver/hw/video.h"
#include "pf-driver/softgpu/video/engine.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::video::test {

using Dwords = std::vector<std::uint32_t>;

// VRAM offsets; MC address = kFbBase + offset
inline constexpr std::uint64_t kTable = 0x100000;
inline constexpr std::uint64_t kFence = 0x110000;
inline constexpr std::uint64_t kJob = 0x120000;
inline constexpr std::uint32_t kRingDwords = 1024;
inline constexpr Vmid kUserVmid{8};
inline constexpr std::uint64_t kUserPage = 0x7f0000000000;
inline constexpr std::uint64_t kUserVram = 0x200000;

Dwords operator+(Dwords a, const Dwords& b);

// commands of an init table
Dwords direct_write(std::uint32_t reg, std::uint32_t value);
Dwords modify(std::uint32_t reg, std::uint32_t mask, std::uint32_t data);
Dwords poll(std::uint32_t reg, std::uint32_t mask, std::uint32_t value);
Dwords end_of_table();
/// What the driver has an encoder's list do, as far as it means something to the device.
Dwords driver_list(Encoder encoder);
/// Header and lists, one behind the other; an empty list is left out.
Dwords table_of(const Dwords& uvd, const Dwords& vce);

// packets
Dwords no_ops(unsigned count);
Dwords job(Vmid vmid, std::uint64_t address, std::uint32_t dwords);
/// FENCE, TRAP, END: how a driver ends a submission.
Dwords fence(std::uint64_t address, std::uint32_t value);
Dwords write_register(std::uint32_t reg, std::uint32_t value);
Dwords wait_register(std::uint32_t reg, std::uint32_t mask, std::uint32_t value);

class VideoRig {
public:
    VideoRig();

    /// Puts a table into VRAM and hands it over; the response.
    std::uint32_t hand_over(const Dwords& table);
    std::uint32_t hand_over(const Dwords& table, std::uint32_t ctx_dwords);
    /// Both encoders as the driver brings them up: UVD first, then both.
    void bring_up();
    /// Appends packets, pads to 64 dwords as the driver does and rings.
    void submit(Encoder encoder, const Dwords& packets);
    /// The same without padding.
    void submit_bare(Encoder encoder, const Dwords& packets);
    void put_job(std::uint64_t vram_offset, const Dwords& dwords);
    /// Steps until nothing more can be done; the last result.
    StepResult run();
    [[nodiscard]] const Engine::Ring& ring(Encoder encoder) const { return engine->ring(encoder); }

    softgpu::test::MemoryRig memory;
    std::unique_ptr<mem::PortSet> ports;
    mem::Port* kernel_port = nullptr;  ///< the port of VMID 0, instead of that of `ports`
    bool is_gate_open = true;
    std::vector<ih_iv_entry> interrupts;
    std::function<void()> on_interrupt;
    std::vector<mem::VmFault> faults;
    std::unique_ptr<Engine> engine;

private:
    std::array<std::uint32_t, 2> write_pointers_{};
};

}  // namespace vgpu::softgpu::video::test
