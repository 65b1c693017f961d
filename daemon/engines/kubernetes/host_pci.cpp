// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/host_pci.h"

#include "text/number.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <filesystem>

namespace vgpu::kubernetes {

namespace {

std::string file_of(const std::string& address, const char* name) {
    return fmt::format("/sys/bus/pci/devices/{}/{}", address, name);
}

}  // namespace

/// The file numa_node contains -1 if the function has no NUMA node.
std::optional<int> HostPci::numa_node(const std::string& address) const {
    std::string text = text::whole_file(file_of(address, "numa_node")).value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const auto node = text::number_in<int>(text);
    return node && *node >= 0 ? node : std::nullopt;
}

std::string HostPci::iommu_group(const std::string& address) const {
    std::error_code error;
    const auto link = std::filesystem::read_symlink(file_of(address, "iommu_group"), error);
    return error ? "" : link.filename().string();
}

}  // namespace vgpu::kubernetes
