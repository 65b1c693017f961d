// SPDX-License-Identifier: MIT
#include "cli/pci_facts.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <memory>
#include <stdexcept>

extern "C" {
#include <pci/pci.h>
}

namespace vgpu::cli {

namespace {

/// libpci's handler for fatal errors. Throws the message, because such a handler must not return.
__attribute__((noreturn, format(printf, 1, 2))) void throw_error(char* format, ...) {
    std::array<char, 256> text{};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    throw std::runtime_error(text.data());
}

__attribute__((format(printf, 1, 2))) void ignore_warning(char*, ...) {}

unsigned read_word(pci_dev* device, unsigned offset) {
    return pci_read_word(device, static_cast<int>(offset));
}

unsigned read_dword(pci_dev* device, unsigned offset) {
    return pci_read_long(device, static_cast<int>(offset));
}

/// Sets has_vf_bars and has_vf_bars_assigned. A BAR exists if its register is not 0, because the
/// register has type bits or an address. A 64-bit BAR uses two registers.
void read_vf_bars(pci_dev* device, unsigned capability, SriovFacts& facts) {
    constexpr unsigned kBars = 6, kBarBytes = 4;
    bool is_all_assigned = true;
    for (unsigned bar = 0; bar < kBars; ++bar) {
        const unsigned at = capability + PCI_IOV_BAR_BASE + bar * kBarBytes;
        const unsigned low = read_dword(device, at);
        const bool is_64 = (low & PCI_BASE_ADDRESS_MEM_TYPE_MASK) == PCI_BASE_ADDRESS_MEM_TYPE_64;
        const unsigned high = is_64 ? read_dword(device, at + kBarBytes) : 0;
        if (is_64) ++bar;
        if (low == 0 && high == 0) continue;
        facts.has_vf_bars = true;
        const auto mask = static_cast<unsigned>(PCI_BASE_ADDRESS_MEM_MASK);
        if ((low & mask) == 0 && high == 0) is_all_assigned = false;
    }
    facts.has_vf_bars_assigned = facts.has_vf_bars && is_all_assigned;
}

/// Reads the SR-IOV Extended Capability (PCIe Base Specification); none if the function lacks it.
std::optional<SriovFacts> read_sriov(pci_dev* device) {
    const pci_cap* found = pci_find_cap(device, PCI_EXT_CAP_ID_SRIOV, PCI_CAP_EXTENDED);
    if (found == nullptr) return {};
    const unsigned at = found->addr;
    SriovFacts facts{.total_vfs = read_word(device, at + PCI_IOV_TOTALVF),
                     .enabled_vfs = read_word(device, at + PCI_IOV_NUMVF),
                     .first_vf_offset = read_word(device, at + PCI_IOV_OFFSET),
                     .vf_stride = read_word(device, at + PCI_IOV_STRIDE)};
    const unsigned control = read_word(device, at + PCI_IOV_CTRL);
    facts.is_ari_hierarchy = (control & PCI_IOV_CTRL_ARI) != 0;
    read_vf_bars(device, at, facts);
    return facts;
}

/// True if the port's ARI forwarding is enabled; none if the port does not support ARI forwarding.
std::optional<bool> read_ari_forwarding(pci_dev* device) {
    // PCIe Base Specification, PCI Express Capability Structure
    constexpr unsigned kDeviceCapabilities2 = 0x24, kDeviceControl2 = 0x28;
    constexpr unsigned kAriSupported = 1u << 5, kAriEnabled = 1u << 5;
    const pci_cap* express = pci_find_cap(device, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
    if (express == nullptr) return {};
    if ((read_dword(device, express->addr + kDeviceCapabilities2) & kAriSupported) == 0) return {};
    return (read_word(device, express->addr + kDeviceControl2) & kAriEnabled) != 0;
}

/// Reads only the configuration space; maps no BAR.
PciFunction read_function(pci_dev* device) {
    constexpr unsigned kExtendedStart = 0x100;
    pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_CAPS | PCI_FILL_EXT_CAPS);
    PciFunction facts{.address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", device->domain,
                                             device->bus, device->dev, device->func),
                      .domain = static_cast<unsigned>(device->domain),
                      .bus = device->bus,
                      .device = device->dev,
                      .function = device->func,
                      .vendor_id = device->vendor_id,
                      .device_id = device->device_id,
                      .class_code = device->device_class};
    constexpr unsigned kLayoutMask = 0x7f;  // without the bit for a multi-function device
    facts.is_bridge =
        (pci_read_byte(device, PCI_HEADER_TYPE) & kLayoutMask) == PCI_HEADER_TYPE_BRIDGE;
    if (facts.is_bridge) facts.secondary_bus = pci_read_byte(device, PCI_SECONDARY_BUS);
    // without permission, the extended space reads as all zeros or all ones
    const unsigned extended = read_dword(device, kExtendedStart);
    facts.has_extended_config = extended != 0 && extended != UINT32_MAX;
    facts.sriov = read_sriov(device);
    facts.has_ari = pci_find_cap(device, PCI_EXT_CAP_ID_ARI, PCI_CAP_EXTENDED) != nullptr;
    if (facts.is_bridge) facts.is_forwarding_ari = read_ari_forwarding(device);
    if (const pci_cap* acs = pci_find_cap(device, PCI_EXT_CAP_ID_ACS, PCI_CAP_EXTENDED))
        facts.acs_control = read_word(device, acs->addr + PCI_ACS_CTRL);
    return facts;
}

}  // namespace

/// Base classes 03h and 12h of the PCI Code and ID Assignment Specification.
bool is_gpu(const PciFunction& function) {
    constexpr unsigned kDisplay = 0x03, kAccelerator = 0x12;
    const unsigned base = function.class_code >> 8;
    return base == kDisplay || base == kAccelerator;
}

bool is_amd_gpu(const PciFunction& function) {
    return function.vendor_id == kAmd && is_gpu(function);
}

const PciFunction* port_above(const std::vector<PciFunction>& all, const PciFunction& function) {
    for (const PciFunction& port : all)
        if (port.is_bridge && port.domain == function.domain &&
            port.secondary_bus == function.bus && port.secondary_bus != 0)
            return &port;
    return nullptr;
}

PciReading read_pci(const std::optional<std::string>& dump_file) {
    PciReading reading;
    const std::unique_ptr<pci_access, decltype(&pci_cleanup)> access(pci_alloc(), pci_cleanup);
    std::string name = "dump.name", value = dump_file.value_or("");
    access->error = throw_error;
    access->warning = ignore_warning;
    if (dump_file) {
        access->method = PCI_ACCESS_DUMP;
        pci_set_param(access.get(), name.data(), value.data());
    }
    try {
        pci_init(access.get());
        pci_scan_bus(access.get());
        for (pci_dev* device = access->devices; device != nullptr; device = device->next)
            reading.functions.push_back(read_function(device));
    } catch (const std::runtime_error& error) {
        reading.functions.clear();
        reading.error = error.what();
    }
    std::sort(reading.functions.begin(), reading.functions.end(),
              [](const PciFunction& a, const PciFunction& b) { return a.address < b.address; });
    return reading;
}

}  // namespace vgpu::cli
