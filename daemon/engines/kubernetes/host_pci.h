// SPDX-License-Identifier: MIT
//
// HostPci: implements PciPort. Reads the NUMA node and the IOMMU group of a function from sysfs.
// Thread-safe.
#pragma once

#include "daemon/engines/kubernetes/ports.h"

namespace vgpu::kubernetes {

class HostPci final : public PciPort {
public:
    [[nodiscard]] std::optional<int> numa_node(const std::string& address) const override;
    [[nodiscard]] std::string iommu_group(const std::string& address) const override;
};

}  // namespace vgpu::kubernetes
