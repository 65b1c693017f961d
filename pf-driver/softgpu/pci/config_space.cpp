// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/pci/config_space.h"

#include <algorithm>
#include <cassert>

namespace vgpu::softgpu::pci {
namespace {

/// The part of [first, first + count) that an access of `size` bytes at `offset` covers.
struct Overlap {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    Overlap(std::uint32_t first, std::uint32_t count, std::uint32_t offset, std::size_t size)
        : begin(std::max(first, offset)),
          end(std::min(first + count, offset + static_cast<std::uint32_t>(size))) {}
    [[nodiscard]] bool is_empty() const { return begin >= end; }
    [[nodiscard]] std::size_t size() const { return end - begin; }
};

}  // namespace

void ConfigSpace::read(std::uint32_t offset, std::span<std::byte> out) const {
    assert(offset + out.size() <= kBytes);
    if (is_absent()) {
        std::ranges::fill(out, std::byte{0xff});
        return;
    }
    std::copy_n(value_.begin() + offset, out.size(), out.begin());
    for (const Claim& claim : claims_) {
        const Overlap part(claim.first, claim.count, offset, out.size());
        if (part.is_empty()) continue;
        claim.read(part.begin - claim.first, out.subspan(part.begin - offset, part.size()));
    }
}

void ConfigSpace::read_power_on(std::uint32_t offset, std::span<std::byte> out) const {
    assert(offset + out.size() <= kBytes);
    std::copy_n(power_on_.begin() + offset, out.size(), out.begin());
}

/// Per byte: keeps read-only bits, stores writable bits, then clears write-1-to-clear bits. Claimed
/// bytes are skipped, because their handlers get the write.
void ConfigSpace::store_masked(std::uint32_t offset, std::span<const std::byte> data) {
    for (std::size_t i = 0; i < data.size(); i++) {
        const std::size_t at = offset + i;
        if (is_claimed_[at]) continue;
        const std::byte kept = value_[at] & ~writable_[at];
        value_[at] = (kept | (data[i] & writable_[at])) & ~(data[i] & one_clears_[at]);
    }
}

/// Stores the data, then calls the handlers, then the observers, so that an observer sees the whole
/// access.
void ConfigSpace::write(std::uint32_t offset, std::span<const std::byte> data) {
    assert(offset + data.size() <= kBytes);
    if (is_absent()) return;
    store_masked(offset, data);
    for (const Claim& claim : claims_) {
        const Overlap part(claim.first, claim.count, offset, data.size());
        if (part.is_empty()) continue;
        claim.write(part.begin - claim.first, data.subspan(part.begin - offset, part.size()));
    }
    for (const Observer& observer : observers_) {
        const Overlap part(observer.first, observer.count, offset, data.size());
        if (!part.is_empty()) observer.changed();
    }
}

void ConfigSpace::add(std::uint32_t base, std::initializer_list<ConfigRegister> registers) {
    for (const ConfigRegister& added : registers) {
        const std::uint32_t at = base + added.offset;
        std::copy_n(bytes_of(added.value).begin(), added.bytes, value_.begin() + at);
        std::copy_n(bytes_of(added.writable).begin(), added.bytes, writable_.begin() + at);
        std::copy_n(bytes_of(added.one_clears).begin(), added.bytes, one_clears_.begin() + at);
    }
}

void ConfigSpace::claim(std::uint32_t first, std::uint32_t count, Read read, Write write) {
    assert(first + count <= kBytes);
    for (std::uint32_t at = first; at < first + count; at++) {
        assert(!is_claimed_[at]);
        is_claimed_[at] = true;
    }
    claims_.push_back({first, count, std::move(read), std::move(write)});
}

void ConfigSpace::on_write(std::uint32_t first, std::uint32_t count,
                           std::function<void()> changed) {
    observers_.push_back({first, count, std::move(changed)});
}

}  // namespace vgpu::softgpu::pci
