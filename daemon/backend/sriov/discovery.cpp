// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/discovery.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <memory>

extern "C" {
#include <pci/pci.h>
}

namespace vgpu::daemon::sriov {

namespace {

constexpr std::string_view kDevices = "/sys/bus/pci/devices";
/// PCI Code and ID Assignment Specification: display controllers, processing accelerators.
constexpr std::uint32_t kDisplay = 0x03, kAccelerator = 0x12;
constexpr unsigned kClassShift = 16;

struct DriverRow {
    std::string_view driver;
    PfKind kind;
    std::string_view fixed_count;  ///< why vgpud cannot change the number of VFs; empty: it can
};
/// The drivers whose PFs are not Generic. gim and amdgpu have no sriov_configure; NVIDIA's driver
/// refuses writes to sriov_numvfs.
constexpr std::array kDrivers{
    DriverRow{"", PfKind::None, "it has no driver"},
    DriverRow{"vfio-pci", PfKind::None, "a VM has the PF itself"},
    DriverRow{"vgpu_pf", PfKind::Own, ""},
    DriverRow{"xe", PfKind::Xe, ""},
    DriverRow{"gim", PfKind::Adopted, "gim sets it, by 'vf_num' in /etc/gim_config"},
    DriverRow{"amdgpu", PfKind::Adopted, "amdgpu is not a PF driver; AMD's PF driver is gim"},
    DriverRow{"nvidia", PfKind::Adopted, "NVIDIA's sriov-manage sets it"}};

const DriverRow* row_of(std::string_view driver) {
    const auto* found = std::find_if(kDrivers.begin(), kDrivers.end(),
                                     [&](const auto& row) { return row.driver == driver; });
    return found == kDrivers.end() ? nullptr : found;
}

/// A message handler for libpci that drops the message.
__attribute__((format(printf, 1, 2))) void ignore(char*, ...) {}

/// Looks up names in libpci's list of PCI ids. libpci reads the list (over 1 MB) at the first
/// look-up.
class PciNames {
public:
    /// Sets libpci's message handlers without pci_init(), which needs a machine with PCI.
    PciNames() : access_(pci_alloc(), &pci_cleanup) { access_->warning = access_->debug = ignore; }

    /// The names of vendor and device; describe(ids) if the list lacks the ids.
    [[nodiscard]] std::string name_of(const PciIds& ids) const {
        constexpr int kBytes = 256;
        std::array<char, kBytes> text{};
        const char* name =
            pci_lookup_name(access_.get(), text.data(), kBytes,
                            PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, ids.vendor, ids.device);
        return name == nullptr ? describe(ids) : as_utf8(name);
    }

private:
    const std::unique_ptr<pci_access, decltype(&pci_cleanup)> access_;
};

/// Reads the PF at `address`. None if the function has no SR-IOV, such as a VF. Unless the caller
/// named the function, also none if the function is not a GPU or can have no VFs.
Result<std::optional<FoundPf>> inspect(Sysfs& files, const PciNames& names,
                                       const std::string& address, bool is_named) {
    std::optional<FoundPf> none;
    if (!files.has(device_path(address, "sriov_totalvfs"))) return none;
    TRY(const auto total, read_number(files, device_path(address, "sriov_totalvfs")));
    TRY(const auto code, read_number(files, device_path(address, "class"), UINT32_MAX));
    const auto base = static_cast<std::uint32_t>(code >> kClassShift);
    const bool is_gpu = base == kDisplay || base == kAccelerator;
    if (!is_named && (!is_gpu || total == 0)) return none;
    TRY(PfFunction facts, SriovPf::inspect(files, address));
    return FoundPf{.address = address,
                   .name = names.name_of(facts.ids),
                   .pci_class = static_cast<std::uint32_t>(code),
                   .kind = kind_of(facts.driver),
                   .facts = std::move(facts)};
}

}  // namespace

PfKind kind_of(std::string_view driver) {
    const DriverRow* row = row_of(driver);
    return row == nullptr ? PfKind::Generic : row->kind;
}

std::string_view fixed_count_reason(std::string_view driver) {
    const DriverRow* row = row_of(driver);
    return row == nullptr ? std::string_view() : row->fixed_count;
}

bool keeps_its_vfs(std::string_view driver) {
    return driver == "nvidia";
}

Discovery find_pfs(Sysfs& files, const std::vector<std::string>& named) {
    Discovery out;
    const auto addresses = files.list(std::string(kDevices));
    if (!addresses) {
        out.problems.push_back(error_of(addresses.error()).cause);
        return out;
    }
    const PciNames names;
    for (const std::string& address : *addresses) {
        const bool is_named = std::find(named.begin(), named.end(), address) != named.end();
        auto found = inspect(files, names, address, is_named);
        if (!found)
            out.problems.push_back(found.error().cause);
        else if (*found)
            out.pfs.push_back(**std::move(found));
    }
    return out;
}

}  // namespace vgpu::daemon::sriov
