// SPDX-License-Identifier: MIT
#include "cli/host_collector.h"

#include "cli/archive.h"
#include "cli/format.h"
#include "text/child.h"
#include "text/whole_file.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace vgpu::cli {

namespace {

namespace fs = std::filesystem;

std::optional<std::string> text_of_file(const std::string& path) {
    auto text = text::whole_file(path);
    if (!text) return {};
    return *std::move(text);
}

/// Names in a directory, sorted; empty if the directory is unreadable.
std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
        names.push_back(at->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Facts of a file. `kind`: the expected type, such as S_IFDIR. Follows links, as QEMU does.
FileFacts file_facts(const std::string& path, unsigned kind) {
    constexpr unsigned kPermissions = 07777;
    FileFacts facts{.path = path};
    struct stat file {};
    facts.exists = ::stat(path.c_str(), &file) == 0;
    if (!facts.exists) return facts;
    facts.has_expected_type = (file.st_mode & S_IFMT) == kind;
    facts.mode = file.st_mode & kPermissions;
    return facts;
}

/// The number in a file of sysfs; 0 if unreadable. "0x…" is hexadecimal, "0…" octal, as in C.
std::uint64_t number_in_file(const std::string& path) {
    constexpr int kAnyBase = 0;
    return std::strtoull(text_of_file(path).value_or("").c_str(), nullptr, kAnyBase);
}

}  // namespace

std::map<std::string, std::string> parse_kernel_config(const std::string& text) {
    std::map<std::string, std::string> config;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t equals = line.find('=');
        if (line.starts_with("CONFIG_") && equals != std::string::npos)
            config[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return config;
}

HostFacts HostCollector::collect(const std::function<std::unique_ptr<Service>()>& connect) const {
    constexpr std::chrono::seconds kQemuLimit{5};
    constexpr std::size_t kMaxVersion = 64 * 1024;
    HostFacts facts;
    facts.vgpuctl_version = VGPU_VERSION;
    facts.is_root = ::geteuid() == 0;
    read_kernel(facts);
    facts.pci = read_pci(sources_.pci_dump);
    read_sysfs_of_gpus(facts);
    read_vendor_pfs(facts);
    const text::Finished qemu =
        text::run_child({sources_.qemu, "--version"}, kQemuLimit, kMaxVersion);
    if (qemu.status == 0) facts.qemu_version = qemu.out.substr(0, qemu.out.find('\n'));
    ask_service(connect, facts.service);
    facts.run_dir = file_facts(sources_.run_dir, S_IFDIR);
    for (const Properties& vf : facts.service.vfs) {
        const bool is_mode_none = text_of(vf, "AssignmentMode") == "none";
        if (const std::string socket = text_of(vf, "Socket"); socket != "-" && !is_mode_none)
            facts.vf_sockets.push_back(file_facts(socket, S_IFSOCK));
    }
    return facts;
}

/// Asks vgpud. Stops at the first failure, so that vgpuctl waits only once for a vgpud that hangs.
void HostCollector::ask_service(const std::function<std::unique_ptr<Service>()>& connect,
                                ServiceFacts& facts) const {
    try {
        const auto service = connect();
        service->limit_calls(kServiceTimeout);
        facts.has_bus = true;
        facts.manager = service->manager();
        facts.has_answered = true;
        facts.gpus = service->list_gpus();
        facts.vfs = service->list_vfs();
    } catch (const ServiceError& error) {
        facts.error = error.what();
    }
}

void HostCollector::read_kernel(HostFacts& facts) const {
    utsname name{};
    ::uname(&name);
    facts.kernel_release = name.release;
    facts.kernel_command_line = text_of_file(below_root("/proc/cmdline")).value_or("");
    facts.kernel_config = read_config(facts.kernel_release);
    facts.module = read_module(facts.kernel_release);
    facts.iommu_groups = names_in(below_root("/sys/kernel/iommu_groups")).size();
}

/// Reads the kernel's configuration in /boot, else the configuration that is built into the kernel
/// (CONFIG_IKCONFIG_PROC). None if both are unreadable.
std::optional<std::map<std::string, std::string>> HostCollector::read_config(
    const std::string& release) const {
    std::optional<std::string> text = text_of_file(below_root("/boot/config-" + release));
    if (!text) text = read_compressed(below_root("/proc/config.gz"));
    if (!text) return {};
    return parse_kernel_config(*text);
}

/// Looks for the module in depmod's list (modules.dep), because a module may be in any directory
/// and be compressed in any way.
ModuleFacts HostCollector::read_module(const std::string& release) const {
    ModuleFacts facts;
    std::error_code error;
    facts.is_loaded = fs::is_directory(below_root("/sys/module/vgpu_pf"), error);
    const auto known = text_of_file(below_root("/lib/modules/" + release + "/modules.dep"));
    facts.is_available = known && known->find("/vgpu_pf.ko") != std::string::npos;
    for (const std::string& name : names_in(below_root("/dev")))
        if (name.starts_with("vgpu-pf")) facts.pf_devices.push_back("/dev/" + name);
    return facts;
}

/// Fills in is_vf and the IOMMU groups, both for GPUs only.
void HostCollector::read_sysfs_of_gpus(HostFacts& facts) const {
    for (PciFunction& one : facts.pci.functions) {
        if (!is_gpu(one)) continue;
        const std::string node = below_root("/sys/bus/pci/devices/" + one.address);
        std::error_code error;
        one.is_vf = fs::exists(node + "/physfn", error);
        const auto members = names_in(node + "/iommu_group/devices");
        if (!members.empty()) facts.group_members[one.address] = members;
    }
}

/// Reads a PF that has a vendor's driver or no driver. None if the function has no SR-IOV, is not a
/// GPU, or has the driver vgpu_pf.
std::optional<VendorPf> HostCollector::read_vendor_pf(const std::string& address) const {
    // PCI Code and ID Assignment Specification: display controllers, processing accelerators
    constexpr std::uint64_t kDisplay = 0x03, kAccelerator = 0x12;
    constexpr unsigned kClassShift = 16;
    const std::string node = below_root("/sys/bus/pci/devices/" + address);
    const std::string drivers = below_root("/sys/bus/pci/drivers/");
    std::error_code error;
    const std::uint64_t base = number_in_file(node + "/class") >> kClassShift;
    if (!fs::exists(node + "/sriov_totalvfs", error)) return {};
    if (base != kDisplay && base != kAccelerator) return {};
    VendorPf pf{.address = address,
                .driver = fs::read_symlink(node + "/driver", error).filename().string(),
                .total_vfs = number_in_file(node + "/sriov_totalvfs")};
    if (pf.driver == "vgpu_pf") return {};
    const std::string profile = node + "/sriov_admin/vf1/profile/";
    pf.has_vf_quantum = fs::exists(profile + "exec_quantum_ms", error);
    pf.has_vram_quota = fs::exists(profile + "vram_quota", error);
    pf.has_xe_vfio = fs::exists(drivers + "xe-vfio-pci", error);
    pf.has_vfio_driver = pf.has_xe_vfio || fs::exists(drivers + "vfio-pci", error);
    read_vfs(node, pf);
    return pf;
}

/// Reads the facts of a PF's VFs into `pf`. `node`: the PF's directory in sysfs.
void HostCollector::read_vfs(const std::string& node, VendorPf& pf) const {
    std::error_code error;
    for (const std::string& name : names_in(node)) {
        if (!name.starts_with("virtfn")) continue;
        const std::string vf = node + "/" + name;
        const std::string driver = fs::read_symlink(vf + "/driver", error).filename().string();
        const std::string type = vf + "/nvidia/current_vgpu_type";
        if (fs::exists(type, error) && number_in_file(type) == 0) ++pf.vfs_without_type;
        const bool is_for_vms = driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci");
        // NVIDIA's driver itself gives its VFs to VMs
        if (!driver.empty() && !is_for_vms && driver != "nvidia") pf.host_drivers.push_back(driver);
    }
}

/// Paths of files with which other programs set up VFs at boot, and of files that show that such a
/// program is installed.
std::vector<std::string> HostCollector::find_other_managers() const {
    constexpr std::string_view kFile = "sriov_numvfs";
    std::vector<std::string> found;
    std::error_code error;
    const auto check_file = [&](const std::string& path) {
        const auto text = text_of_file(below_root(path));
        if (text && text->find(kFile) != std::string::npos) found.push_back(path);
    };
    for (const char* folder : {"/etc/udev/rules.d", "/etc/tmpfiles.d", "/etc/systemd/system"})
        for (const std::string& name : names_in(below_root(folder)))
            check_file(std::string(folder) + "/" + name);
    check_file("/etc/rc.local");
    for (const char* path : {"/etc/sriov-operator", "/usr/bin/xpumd", "/usr/bin/nvidia-vgpu-dm"})
        if (fs::exists(below_root(path), error)) found.emplace_back(path);
    for (const std::string& name : names_in(below_root("/var/lib/kubelet/device-plugins")))
        if (name.find("gpu.intel") != std::string::npos || name.find("sriov") != std::string::npos)
            found.push_back("/var/lib/kubelet/device-plugins/" + name);
    return found;
}

VendorFacts HostCollector::read_vendor_facts() const {
    // Intel VT-d, Capability Register: bits 21 to 16 have the maximum guest address width less 1
    constexpr unsigned kWidthShift = 16, kWidthMask = 0x3f;
    constexpr int kHex = 16;
    constexpr std::string_view kSizes = "address sizes";
    VendorFacts facts;
    std::error_code error;
    facts.has_xe = fs::exists(below_root("/sys/module/xe"), error);
    const std::string max_vfs = below_root("/sys/module/xe/parameters/max_vfs");
    // the file is readable by root only
    if (text_of_file(max_vfs)) facts.xe_max_vfs = static_cast<unsigned>(number_in_file(max_vfs));
    facts.has_gim_config = fs::exists(below_root("/etc/gim_config"), error);
    facts.has_sriov_manage = fs::exists(below_root("/usr/lib/nvidia/sriov-manage"), error);
    for (const std::string& unit : names_in(below_root("/sys/class/iommu")))
        if (const auto cap =
                text_of_file(below_root("/sys/class/iommu/" + unit + "/intel-iommu/cap"))) {
            const auto bits = static_cast<unsigned>(
                ((std::strtoull(cap->c_str(), nullptr, kHex) >> kWidthShift) & kWidthMask) + 1);
            facts.iommu_bits = facts.iommu_bits == 0 ? bits : std::min(facts.iommu_bits, bits);
        }
    const std::string cpus = text_of_file(below_root("/proc/cpuinfo")).value_or("");
    if (const std::size_t at = cpus.find(kSizes); at != std::string::npos)
        facts.cpu_bits =
            static_cast<unsigned>(std::strtoul(cpus.c_str() + cpus.find(':', at) + 1, nullptr, 10));
    facts.other_managers = find_other_managers();
    return facts;
}

void HostCollector::read_vendor_pfs(HostFacts& facts) const {
    for (const std::string& address : names_in(below_root("/sys/bus/pci/devices")))
        if (auto pf = read_vendor_pf(address)) facts.vendor_pfs.push_back(*std::move(pf));
    if (!facts.vendor_pfs.empty()) facts.vendor = read_vendor_facts();
}

}  // namespace vgpu::cli
