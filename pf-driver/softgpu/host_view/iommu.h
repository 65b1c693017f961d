// SPDX-License-Identifier: MIT
//
// Iommu: the registers and tables of the IOMMU for the functions behind the root port. With the
// IOMMU, the VM can pass a VF to a nested VM (vfio-pci). A function is in the identity domain until
// the VM's kernel routes it to another domain (command ROUTE). A domain maps the DMA addresses of
// its functions to physical addresses of the VM. Registers: VGPU_IOMMU_* in pf-driver/hw/pci.h.
//
// Iommu only keeps the tables and reports changes to the Listener, which maps and unmaps the memory
// for the functions. Iommu refuses a MAP or UNMAP that would exceed the limits of the tables. Only
// the io thread uses an Iommu.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "pf-driver/hw/pci.h"

namespace vgpu::softgpu::host_view {

/// The VM chooses the numbers of its domains, except for the two fixed numbers in Domain.
class Iommu {
public:
    /// Number of a domain. Identity: all memory of the VM, untranslated. Blocked: no memory.
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

    /// Called by Iommu inside write() and reset(); must not call these two functions.
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void mapped(Domain domain, const Mapping& mapping) = 0;
        /// A mapping that mapped() has reported was removed. If a part of the mapping remains,
        /// mapped() then reports that part. Not called by Iommu::reset(), which calls routed()
        /// instead.
        virtual void unmapped(Domain domain, const Mapping& mapping) = 0;
        /// ROUTE or Iommu::reset() may have changed the domain of the function. Not called by FREE,
        /// although FREE moves functions to the Blocked domain: unmapped() has reported all their
        /// mappings.
        virtual void routed(std::uint32_t routing_id) = 0;
    };

    explicit Iommu(Listener& listener) : listener_(listener) {}

    /// The domain of a function; Identity if the VM has not routed the function.
    [[nodiscard]] Domain domain_of(std::uint32_t routing_id) const;
    /// The mappings of a domain other than Identity; empty for an unknown domain.
    [[nodiscard]] const Mappings& mappings_of(Domain domain) const;

    /// Accesses to the BAR; offset + size <= VGPU_ROOT_PORT_BAR_BYTES. Bytes after the registers
    /// read 0.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    /// If the write includes the first byte of the command register, executes the command and sets
    /// STATUS to its outcome.
    void write(std::uint64_t offset, std::span<const std::byte> data);
    /// Clears registers and domains, and moves all functions back to the identity domain. Calls
    /// routed() for every function that was routed.
    void reset();

private:
    /// Limit for all domains together. Checked by MAP, and by an UNMAP that cuts the middle out of
    /// a mapping, because such an UNMAP leaves two mappings instead of one.
    static constexpr std::size_t kMaxMappings = 65536;
    static constexpr std::size_t kMaxDomains = 64;
    /// The value of STATUS.
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
