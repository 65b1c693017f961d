// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/range_allocator.h"

#include <fmt/format.h>

#include <iterator>

#include "tests/support/deadline.h"

namespace vgpu::test {

RangeAllocator::RangeAllocator(std::string name, std::uint64_t first, std::uint64_t end)
    : name_(std::move(name)) {
    if (first < end) free_[first] = end;
}

std::uint64_t RangeAllocator::allocate(std::uint64_t size, std::uint64_t align) {
    for (const auto& [first, end] : free_) {
        const auto start = (first + align - 1) & ~(align - 1);
        if (start + size > end) continue;
        const auto gap_first = first;
        const auto gap_end = end;
        free_.erase(gap_first);
        if (gap_first < start) free_[gap_first] = start;
        if (start + size < gap_end) free_[start + size] = gap_end;
        used_[start] = start + size;
        return start;
    }
    throw VfError(fmt::format("{}: no {} bytes left", name_, size));
}

void RangeAllocator::free(std::uint64_t start) {
    const auto used = used_.find(start);
    if (used == used_.end()) throw VfError(fmt::format("{}: {:#x} is not allocated", name_, start));
    auto [at, inserted] = free_.emplace(start, used->second);
    used_.erase(used);
    if (const auto next = std::next(at); next != free_.end() && next->first == at->second) {
        at->second = next->second;
        free_.erase(next);
    }
    if (at == free_.begin()) return;
    if (const auto before = std::prev(at); before->second == at->first) {
        before->second = at->second;
        free_.erase(at);
    }
}

std::uint64_t RangeAllocator::free_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [first, end] : free_) sum += end - first;
    return sum;
}

}  // namespace vgpu::test
