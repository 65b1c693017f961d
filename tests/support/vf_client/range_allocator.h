// SPDX-License-Identifier: MIT
//
// RangeAllocator: first fit over one range of addresses; what a driver's heap managers do for VRAM,
// GART, guest RAM and process addresses. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::test {

class RangeAllocator {
public:
    RangeAllocator(std::string name, std::uint64_t first, std::uint64_t end);

    /// Throws VfError if nothing fits. `align` is a power of two.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t size, std::uint64_t align = 4096);
    /// `start` came from allocate() and was not freed since.
    void free(std::uint64_t start);
    [[nodiscard]] std::uint64_t free_bytes() const;

private:
    std::string name_;
    std::map<std::uint64_t, std::uint64_t> free_;  // start -> end
    std::map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace vgpu::test
