// SPDX-License-Identifier: MIT
//
// SdmaRig: engine 0 of one VF over the real memory path, with the kernel's ring and a user process
// (VMID 8) as amdgpu and KFD set them up. Packet builders return dwords.
#pragma once

#include <initializer_list>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/sdma/engine.h"
#include "tests/support/virtual_clock.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::test {

using Dwords = std::vector<std::uint32_t>;

inline constexpr Vmid kUserVmid{8};
inline constexpr std::uint16_t kUserPasid = 0x8001;
inline constexpr unsigned kRingLog2 = 8;
inline constexpr std::uint64_t kRingBytes = 4ull << kRingLog2;

// VRAM offsets of the kernel's things; MC address = kFbBase + offset
inline constexpr std::uint64_t kKernelRing = 0x100000;
inline constexpr std::uint64_t kKernelReport = 0x110000;
inline constexpr std::uint64_t kUserMqd = 0x120000;
inline constexpr std::uint64_t kSecondMqd = 0x121000;
// The process has 1 MiB at kUserBase, backed by VRAM from kUserVram on
inline constexpr std::uint64_t kUserBase = 0x7f0000000000;
inline constexpr std::uint64_t kUserVram = 0x200000;
inline constexpr std::uint64_t kUserBytes = 0x100000;
// inside the process: ring, rptr report and wptr poll word of queue n at + n * kUserQueueStride
inline constexpr std::uint64_t kUserRing = kUserBase + 0x80000;
inline constexpr std::uint64_t kUserReport = kUserBase + 0x90000;
inline constexpr std::uint64_t kUserWptr = kUserBase + 0x90008;
inline constexpr std::uint64_t kUserQueueStride = 0x2000;

Dwords operator+(Dwords a, const Dwords& b);
std::uint32_t header(std::uint32_t op, std::uint32_t sub_op = 0);
Dwords copy_linear(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
Dwords write_linear(std::uint64_t to, const Dwords& data);
Dwords fence(std::uint64_t address, std::uint32_t value);
Dwords trap(std::uint32_t context);
Dwords poll_memory(std::uint64_t address, std::uint32_t function, std::uint32_t reference,
                   std::uint32_t mask = ~0u, std::uint32_t retries = SDMA_POLL_FOREVER);
Dwords poll_register(std::uint32_t index, std::uint32_t function, std::uint32_t reference,
                     std::uint32_t mask = ~0u);
Dwords fill(std::uint64_t to, std::uint32_t value, std::uint32_t size, std::uint32_t count);
Dwords atomic(std::uint32_t operation, std::uint64_t address, std::uint64_t source,
              std::uint64_t compare = 0, std::uint32_t loop = 0);
Dwords indirect(std::uint64_t address, std::uint32_t dwords, std::uint32_t vmid = 0);
Dwords register_write(std::uint32_t index, std::uint32_t value, std::uint32_t byte_enables = 0xf);

class SdmaRig {
public:
    explicit SdmaRig(unsigned engine_index = 0);

    /// The kernel's ring, enabled with its doorbell.
    void enable_kernel_ring();
    /// Appends packets to the kernel's ring and rings its doorbell.
    void submit(const Dwords& packets);
    [[nodiscard]] const sdma::Engine::Queue& kernel_queue() const {
        return engine->state().queues[0];
    }

    /// Maps user queue `which` (0 or 1) of the process.
    [[nodiscard]] bool map_user(unsigned which = 0);
    void submit_user(const Dwords& packets, unsigned which = 0);
    [[nodiscard]] static std::uint64_t mqd_of(unsigned which) {
        return which == 0 ? kUserMqd : kSecondMqd;
    }
    [[nodiscard]] static DoorbellIndex doorbell_of(unsigned which) {
        return DoorbellIndex{0x11e0 + which * 0x400};
    }

    /// Steps until nothing more can be done; the last result.
    StepResult run(StepBudget budget = {});

    template <typename T> void put_user(std::uint64_t va, const T& value) {
        mem.put(kUserVram + (va - kUserBase), value);
    }
    template <typename T> [[nodiscard]] T get_user(std::uint64_t va) const {
        return mem.get<T>(kUserVram + (va - kUserBase));
    }

    MemoryRig mem;
    VirtualClock clock;
    std::unique_ptr<softgpu::mem::PortSet> ports;
    std::vector<ih_iv_entry> interrupts;
    std::vector<softgpu::mem::VmFault> faults;
    std::unique_ptr<sdma::Engine> engine;
    std::uint64_t user_root;

private:
    std::uint32_t reg(std::uint32_t engine0_register) const;

    unsigned index_;
    std::uint64_t kernel_wptr_ = 0;
    std::array<std::uint64_t, 2> user_wptr_{};
};

}  // namespace vgpu::softgpu::test
