// SPDX-License-Identifier: MIT
//
// Iommu: translates the addresses of functions behind the root port, so that the VM can pass a VF
// to a nested VM (vfio-pci). A function belongs to the identity domain until its kernel routes it
// to another; a domain maps pages to addresses of the VM. Registers: VGPU_IOMMU_* of hw/pci.h.
//
// It only keeps tables; the owner of the functions learns of every change (Listener) and does the
// mapping. The tables are limited; a command that exceeds the limit is refused. Io thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "pf-driver/hw/pci.h"

namespace vgpu::softgpu::host_view {

/// The VM chooses the numbers of domains and routing ids.
class Iommu {
public:
    enum class Domain : std::uint32_t {
        Identity = VGPU_IOMMU_IDENTITY,
        Blocked = VGPU_IOMMU_BLOCKED
    };
    /// [address, address + size) of a domain is [target, ...) of the VM's memory; 4 KiB aligned.
    struct Mapping {
        std::uint64_t address = 0;
        std::uint64_t target = 0;
        std::uint64_t size = 0;
    };
    using Mappings = std::map<std::uint64_t, Mapping>;  // by address, never overlapping

    /// Called inside write() and reset(), on the io thread; must not write registers.
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void mapped(Domain domain, const Mapping& mapping) = 0;
        /// A mapping that mapped() has reported is removed as a whole.
        virtual void unmapped(Domain domain, const Mapping& mapping) = 0;
        /// The function has been routed to another domain.
        virtual void routed(std::uint32_t routing_id) = 0;
    };

    explicit Iommu(Listener& listener) : listener_(listener) {}

    [[nodiscard]] Domain domain_of(std::uint32_t routing_id) const;
    /// For a domain other than Identity.
    [[nodiscard]] const Mappings& mappings_of(Domain domain) const;

    /// The BAR; offset + size <= VGPU_ROOT_PORT_BAR_BYTES.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    /// A write that reaches the command register executes the command; STATUS holds the outcome.
    void write(std::uint64_t offset, std::span<const std::byte> data);
    /// Moves all functions back to the identity domain; reports each to the listener.
    void reset();

private:
    /// For all domains together: limits the memory that a VM can make softgpu use.
    static constexpr std::size_t kMaxMappings = 65536;
    static constexpr std::size_t kMaxDomains = 64;
    /// The value that STATUS shows.
    enum class Outcome : std::uint32_t { Done, Refused };

    [[nodiscard]] Outcome execute(std::uint32_t command);
    [[nodiscard]] Outcome map(Domain domain, const Mapping& mapping);
    [[nodiscard]] Outcome unmap(Domain domain, std::uint64_t address, std::uint64_t size);
    [[nodiscard]] Outcome free(Domain domain);
    [[nodiscard]] Outcome route(std::uint32_t routing_id, Domain domain);
    void add(Domain domain, const Mapping& mapping);

    Listener& listener_;
    std::array<std::byte, VGPU_IOMMU_BYTES> registers_{};
    std::map<Domain, Mappings> domains_;
    std::map<std::uint32_t, Domain> routes_;  // by routing id; no entry: identity
    std::size_t mapping_count_ = 0;
};

}  // namespace vgpu::softgpu::host_view
