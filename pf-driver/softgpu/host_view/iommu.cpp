// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/host_view/iommu.h"

#include <limits>
#include <utility>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::host_view {
namespace {

constexpr std::uint64_t kPageMask = 4096 - 1;
constexpr std::uint64_t kRoutingIds = 1u << 16;

bool is_well_formed(const Iommu::Mapping& mapping) {
    constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
    return mapping.size != 0 &&
           ((mapping.address | mapping.target | mapping.size) & kPageMask) == 0 &&
           mapping.size <= kLast - mapping.address && mapping.size <= kLast - mapping.target;
}

/// The first mapping that ends after `address`.
template <typename Map> auto first_beyond(Map& mappings, std::uint64_t address) {
    auto found = mappings.upper_bound(address);
    if (found == mappings.begin()) return found;
    const auto before = std::prev(found);
    return address - before->first < before->second.size ? before : found;
}

}  // namespace

Iommu::Domain Iommu::domain_of(std::uint32_t routing_id) const {
    const auto found = routes_.find(routing_id);
    return found == routes_.end() ? Domain::Identity : found->second;
}

const Iommu::Mappings& Iommu::mappings_of(Domain domain) const {
    static const Mappings kNone;
    const auto found = domains_.find(domain);
    return found == domains_.end() ? kNone : found->second;
}

void Iommu::read(std::uint64_t offset, std::span<std::byte> out) const {
    for (std::byte& value : out) {
        value = offset < registers_.size() ? registers_[offset] : std::byte{0};
        offset++;
    }
}

void Iommu::write(std::uint64_t offset, std::span<const std::byte> data) {
    const bool is_command =
        offset <= VGPU_IOMMU_COMMAND && VGPU_IOMMU_COMMAND - offset < data.size();
    for (const std::byte value : data) {
        if (offset < registers_.size()) registers_[offset] = value;
        offset++;
    }
    if (!is_command) return;
    const Outcome outcome = execute(load<std::uint32_t>(registers_, VGPU_IOMMU_COMMAND));
    store(std::span<std::byte>(registers_), VGPU_IOMMU_STATUS, outcome);
}

Iommu::Outcome Iommu::execute(std::uint32_t command) {
    const auto subject = load<std::uint32_t>(registers_, VGPU_IOMMU_SUBJECT);
    const Mapping mapping{load<std::uint64_t>(registers_, VGPU_IOMMU_ADDRESS),
                          load<std::uint64_t>(registers_, VGPU_IOMMU_TARGET),
                          load<std::uint64_t>(registers_, VGPU_IOMMU_SIZE)};
    switch (command) {
        case VGPU_IOMMU_MAP:
            return map(Domain{subject}, mapping);
        case VGPU_IOMMU_UNMAP:
            return unmap(Domain{subject}, mapping.address, mapping.size);
        case VGPU_IOMMU_FREE:
            return free(Domain{subject});
        case VGPU_IOMMU_ROUTE:
            return route(subject, Domain{low32(mapping.target)});
        default:
            return Outcome::Refused;
    }
}

Iommu::Outcome Iommu::map(Domain domain, const Mapping& mapping) {
    if (domain == Domain::Identity || domain == Domain::Blocked || !is_well_formed(mapping))
        return Outcome::Refused;
    const bool is_new = !domains_.contains(domain);
    if (mapping_count_ >= kMaxMappings || (is_new && domains_.size() >= kMaxDomains))
        return Outcome::Refused;
    Mappings& mappings = domains_[domain];
    const auto next = first_beyond(mappings, mapping.address);
    if (next != mappings.end() && next->first < mapping.address + mapping.size)
        return Outcome::Refused;
    add(domain, mapping);
    return Outcome::Done;
}

void Iommu::add(Domain domain, const Mapping& mapping) {
    domains_[domain].emplace(mapping.address, mapping);
    mapping_count_++;
    listener_.mapped(domain, mapping);
}

/// Removes every mapping that overlaps the range, then adds the parts outside the range again.
Iommu::Outcome Iommu::unmap(Domain domain, std::uint64_t address, std::uint64_t size) {
    const auto found = domains_.find(domain);
    if (found == domains_.end() || !is_well_formed({address, 0, size})) return Outcome::Refused;
    Mappings& mappings = found->second;
    const std::uint64_t end = address + size;
    std::vector<Mapping> remaining;
    auto next = first_beyond(mappings, address);
    const bool cuts_middle =
        next != mappings.end() && next->first < address && next->first + next->second.size > end;
    if (cuts_middle && mapping_count_ >= kMaxMappings) return Outcome::Refused;
    while (next != mappings.end() && next->first < end) {
        const Mapping old = next->second;
        next = mappings.erase(next);
        mapping_count_--;
        listener_.unmapped(domain, old);
        if (old.address < address)
            remaining.push_back({old.address, old.target, address - old.address});
        if (old.address + old.size > end)
            remaining.push_back(
                {end, old.target + (end - old.address), old.address + old.size - end});
    }
    for (const Mapping& part : remaining) add(domain, part);
    return Outcome::Done;
}

/// Functions in the domain move to Blocked until the VM's kernel routes them again.
Iommu::Outcome Iommu::free(Domain domain) {
    const auto found = domains_.find(domain);
    if (found != domains_.end()) {
        for (const auto& [address, mapping] : found->second) listener_.unmapped(domain, mapping);
        mapping_count_ -= found->second.size();
        domains_.erase(found);
    }
    for (auto& [routing_id, routed_to] : routes_)
        if (routed_to == domain && domain != Domain::Identity) routed_to = Domain::Blocked;
    return Outcome::Done;
}

/// A domain other than Identity may have no mappings yet; the function's accesses then fail.
Iommu::Outcome Iommu::route(std::uint32_t routing_id, Domain domain) {
    if (routing_id >= kRoutingIds) return Outcome::Refused;
    routes_.insert_or_assign(routing_id, domain);
    listener_.routed(routing_id);
    return Outcome::Done;
}

/// Clears the tables before it calls the listener, because the listener reads them.
void Iommu::reset() {
    registers_ = {};
    domains_.clear();
    mapping_count_ = 0;
    const auto routes = std::exchange(routes_, {});
    for (const auto& [routing_id, domain] : routes) listener_.routed(routing_id);
}

}  // namespace vgpu::softgpu::host_view
