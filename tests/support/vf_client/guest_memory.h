// SPDX-License-Identifier: MIT
//
// GuestMemory: the RAM of the test's guest, one memfd. By default it is sealed against shrinking,
// so that the device may map it; without the seal the device must use message DMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/support/unique_fd.h"
#include "tests/support/vf_client/range_allocator.h"

namespace vgpu::test {

enum class Sealing { Sealed, Unsealed };

class GuestMemory {
public:
    /// Bus addresses start at kIova, as RAM above a PC's 4 GiB hole does.
    static constexpr std::uint64_t kIova = 0x1'0000'0000;

    GuestMemory(std::uint64_t bytes, Sealing sealing);

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint64_t size() const { return map_.bytes().size(); }
    [[nodiscard]] std::span<std::byte> bytes() const { return map_.bytes(); }

    /// Allocates whole zeroed pages; returns their bus address.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::uint64_t align = 4096);
    void free(std::uint64_t iova) { pages_.free(iova); }
    /// The bytes at bus address `iova`; throws if that is not RAM.
    [[nodiscard]] std::span<std::byte> at(std::uint64_t iova, std::uint64_t bytes) const;
    /// Access through the file, not the mapping; false beyond the end of a shrunk file.
    [[nodiscard]] bool read_file(std::uint64_t iova, std::span<std::byte> out) const;
    [[nodiscard]] bool write_file(std::uint64_t iova, std::span<const std::byte> data) const;
    /// Shrinks the file, as a hostile or careless guest may; only possible unsealed.
    void shrink_to(std::uint64_t bytes);

private:
    UniqueFd fd_;
    Mapping map_;
    RangeAllocator pages_;
};

}  // namespace vgpu::test
