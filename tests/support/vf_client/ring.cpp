// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {

Ring::Ring(VfDevice& device, Gart& gart, RingSpec spec)
    : device_(device),
      spec_(std::move(spec)),
      memory_(gart.allocate(std::uint64_t{spec_.dwords} * 4)),
      words_(gart.allocate(4096)) {}

void Ring::push(const Dwords& packets) {
    if (packets.empty()) return;
    wait_for_room(packets.size());
    for (const auto dword : packets) memory_.store((wptr_++ % spec_.dwords) * 4, dword);
    record(packets);
    const auto published = wptr_ * static_cast<std::uint32_t>(spec_.unit);
    words_.store(kWptr, published);
    device_.doorbell(spec_.doorbell, published);
}

void Ring::record(const Dwords& packets) {
    if (spec_.fence == FenceStyle::SdmaFence || !device_.trace().is_recording()) return;
    for (std::size_t at = 0; at < packets.size();) {
        const auto opcode = HW_GET(PM4_HEADER, OPCODE, packets[at]);
        device_.trace().add(TraceKind::Packet, opcode, spec_.doorbell);
        at += HW_GET(PM4_HEADER, COUNT, packets[at]) + 2;
    }
}

void Ring::sync(const Dwords& packets) {
    if (!try_sync(packets, kLimit))
        throw VfError(fmt::format("ring {}: fence {} did not arrive (is {})", spec_.name, fence_,
                                  words_.load<std::uint64_t>(kFence)));
}

bool Ring::try_sync(const Dwords& packets, milliseconds limit) {
    auto stream = packets;
    stream += fence_packet(++fence_);
    push(stream);
    const Deadline deadline(limit);
    while (words_.load<std::uint64_t>(kFence) != fence_) {
        if (deadline.passed()) return false;
        polling_pause();
    }
    return true;
}

Dwords Ring::fence_packet(std::uint64_t value) const {
    const auto address = words_.address + kFence;
    const std::array data{softgpu::low32(value), softgpu::high32(value)};
    switch (spec_.fence) {
        case FenceStyle::WriteData:
            return pm4::write_memory(address, data);
        case FenceStyle::ReleaseMem:
            return pm4::release_mem(address, value, 0);
        case FenceStyle::SdmaFence:
            return sdma::fence(address, data[0]);
    }
    return {};
}

void Ring::wait_for_room(std::size_t dwords) const {
    if (dwords >= spec_.dwords) throw VfError("ring " + spec_.name + ": packets exceed the ring");
    const std::uint64_t mask = spec_.dwords - 1;
    wait_for("ring " + spec_.name + ": room", kLimit, [&] {
        const auto rptr =
            words_.load<std::uint32_t>(kRptr) / static_cast<std::uint32_t>(spec_.unit);
        const auto used = (wptr_ - rptr) & mask;
        return used + dwords < spec_.dwords;
    });
}

void Ring::rewind() {
    wptr_ = 0;
    fence_ = 0;
    std::ranges::fill(words_.cpu, std::byte{0});
}

}  // namespace vgpu::test
