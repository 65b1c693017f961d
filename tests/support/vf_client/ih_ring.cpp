// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/ih_ring.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {
namespace {

/// IH_RB_CNTL of each ring: final values of the stock driver.
constexpr std::array<std::uint32_t, IH_RINGS> kControls{0x903301a1, 0x90110395, 0x90110195};

std::uint32_t ring_bytes(std::uint32_t control) {
    return 4u << HW_GET(IH_RB_CNTL, RB_SIZE, control);
}

}  // namespace

IhRing::IhRing(VfDevice& device) : device_(device) {
    for (const auto control : kControls) {
        const auto bytes = ring_bytes(control);
        rings_.push_back({device.ram().allocate(bytes + 4096), bytes});
    }
}

void IhRing::start(PspRing& psp) {
    rptr_ = 0;
    for (unsigned i = 0; i < IH_RINGS; ++i)
        psp.program_ih(i, HW_SET(IH_RB_CNTL, RB_ENABLE, kControls[i], 0));
    for (unsigned i = 0; i < IH_RINGS; ++i) program(psp, i, kControls[i]);
    for (unsigned i = 0; i < IH_RINGS; ++i) psp.program_ih(i, kControls[i]);
}

void IhRing::program(PspRing& psp, unsigned index, std::uint32_t control) {
    const auto at = index * REG_STRIDE_OSSSYS_IH_RB_CNTL;
    const auto& ring = rings_[index];
    device_.write(REG_OSSSYS_IH_RB_BASE + at, softgpu::low32(ring.iova >> 8));
    device_.write(REG_OSSSYS_IH_RB_BASE_HI + at, softgpu::high32(ring.iova >> 8));
    psp.program_ih(index, HW_SET(IH_RB_CNTL, RB_ENABLE, control, 0));
    if (index == 0) {
        const auto shadow = ring.iova + ring.bytes + IH_WPTR_SHADOW_OFFSET;
        device_.write(REG_OSSSYS_IH_RB_WPTR_ADDR_LO, softgpu::low32(shadow));
        device_.write(REG_OSSSYS_IH_RB_WPTR_ADDR_HI, softgpu::high32(shadow));
    }
    device_.write(REG_OSSSYS_IH_RB_WPTR + at, 0);
    device_.write(REG_OSSSYS_IH_RB_RPTR + at, 0);
    device_.write(REG_OSSSYS_IH_DOORBELL_RPTR + at,
                  HW_PREP(IH_DOORBELL_RPTR, OFFSET, DOORBELL_IH + index * 2) |
                      HW_PREP(IH_DOORBELL_RPTR, ENABLE, 1));
}

void IhRing::stop(PspRing& psp) {
    for (unsigned i = 0; i < IH_RINGS; ++i)
        psp.program_ih(i, HW_SET(IH_RB_CNTL, RB_ENABLE, kControls[i], 0));
}

std::size_t IhRing::drain() {
    const auto& ring = rings_.front();
    const auto memory = device_.ram().at(ring.iova, ring.bytes + 8);
    const auto published = load_shared<std::uint32_t>(memory.subspan(ring.bytes).data());
    if (HW_GET(IH_RB_WPTR, RB_OVERFLOW, published) != 0) ++overflows_;
    const auto wptr = published & (ring.bytes - 1) & ~3u;
    std::size_t taken = 0;
    while (rptr_ != wptr && taken < ring.bytes / IH_ENTRY_BYTES) {
        IvEntry entry;
        std::memcpy(&entry, memory.subspan(rptr_, sizeof entry).data(), sizeof entry);
        entries_.push_back(entry);
        if (entries_.size() > kCapacity) entries_.pop_front();
        rptr_ = (rptr_ + IH_ENTRY_BYTES) & (ring.bytes - 1);
        ++taken;
    }
    if (taken == 0) return 0;
    device_.doorbell32(DOORBELL_IH, rptr_);
    wait_for("IH: read pointer to arrive", milliseconds(100),
             [&] { return device_.read(REG_OSSSYS_IH_RB_RPTR) == rptr_; });
    return taken;
}

void IhRing::wait_interrupt(const Deadline& deadline) {
    pollfd fd{device_.irq_fd(), POLLIN, 0};
    ::poll(&fd, 1, deadline.left_ms());
    std::uint64_t count = 0;
    (void)!::read(device_.irq_fd(), &count, sizeof count);
    drain();
}

IvEntry IhRing::wait(const std::function<bool(const IvEntry&)>& wanted, milliseconds limit) {
    const Deadline deadline(limit);
    drain();
    while (true) {
        const auto found = std::ranges::find_if(entries_, wanted);
        if (found != entries_.end()) {
            const auto entry = *found;
            entries_.erase(found);
            return entry;
        }
        if (deadline.passed()) throw VfError("IH: the expected interrupt did not come");
        wait_interrupt(deadline);
    }
}

}  // namespace vgpu::test
