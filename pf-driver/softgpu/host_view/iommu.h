// SPDX-License-Identifier: MIT
//
// Iommu: the registers and tables of the IOMMU for the functions behind the root port, so that the
// VM can pass a VF to a nested VM (vfio-pci). A function belongs to the identity domain until the
// VM's kernel routes it to another domain. A domain maps pages to addresses of the VM. Registers:
// VGPU_IOMMU_* of hw/pci.h.
//
// Iommu only keeps tables. It reports every change to the owner of the functions (Listener), which
// maps the memory. A MAP or UNMAP that would exceed the limits of the tables is refused. Io thread
// only.
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
    /// Maps [address, address + size) of a domain to [target, target + size) of the VM's memory;
    /// all three are multiples of 4 KiB.
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
        /// A mapping that mapped() has reported is removed as a whole. reset() does not call this:
        /// it only reports the new routes.
        virtual void unmapped(Domain domain, const Mapping& mapping) = 0;
        /// ROUTE or reset() has set the function's domain. FREE, which blocks functions, does not
        /// call this, because unmapped() has reported all mappings.
        virtual void routed(std::uint32_t routing_id) = 0;
    };

    explicit Iommu(Listener& listener) : listener_(listener) {}

    [[nodiscard]] Domain domain_of(std::uint32_t routing_id) const;
    /// The mappings of a domain other than Identity.
    [[nodiscard]] const Mappings& mappings_of(Domain domain) const;

    /// Accesses to the BAR; offset + size <= VGPU_ROOT_PORT_BAR_BYTES.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    /// A write that reaches the command register executes the command; STATUS holds the outcome.
    void write(std::uint64_t offset, std::span<const std::byte> data);
    /// Moves all functions back to the identity domain; reports each to the listener.
    void reset();

private:
    /// Limit for all domains together. MAP checks it, and so does an UNMAP that cuts the middle out
    /// of a mapping, because this adds one mapping.
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
