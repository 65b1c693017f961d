// SPDX-License-Identifier: MIT
#include "cli/diagnosis.h"

#include "cli/colour.h"
#include "cli/format.h"
#include "cli/remedies.h"
#include "cli/vendor_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <sstream>
#include <utility>

namespace vgpu::cli {

namespace {

using Findings = std::vector<Finding>;

// --- the bus and vgpud

/// A missing bus and a missing vgpud have different fixes.
void check_service(const HostFacts& facts, Findings& found) {
    const ServiceFacts& service = facts.service;
    if (!service.has_bus) {
        found.push_back({"bus", Level::Problem, "there is no bus: " + service.error,
                         "vgpuctl and libvirt reach vgpud through D-Bus only",
                         "start dbus, or name the bus with --bus or VGPUCTL_BUS"});
        return;
    }
    found.push_back({"bus", Level::Ok, "the bus is reachable"});
    if (service.has_answered && !service.error.empty()) {
        found.push_back({"vgpud", Level::Warning,
                         fmt::format("vgpud {} answers only in part: {}",
                                     text_of(service.manager, "Version"), service.error),
                         "missing facts of GPUs and VFs were not checked",
                         "'journalctl -u vgpud' shows why; 'vgpuctl list' shows whether it lasts"});
        return;
    }
    if (service.has_answered) {
        found.push_back(
            {"vgpud", Level::Ok, "vgpud " + text_of(service.manager, "Version") + " answers"});
        return;
    }
    found.push_back({"vgpud", Level::Problem, "vgpud does not answer: " + service.error,
                     "VFs keep running, but nothing can be created, changed or shown",
                     "'systemctl status vgpud' shows why; then 'systemctl start vgpud'"});
}

/// Compares the versions of vgpuctl, vgpud and the agents. An agent of another release gives only a
/// note, because guests may have their own administrators.
void check_versions(const HostFacts& facts, Findings& found) {
    if (!facts.service.has_answered) return;
    const std::string vgpud = text_of(facts.service.manager, "Version");
    if (vgpud == facts.vgpuctl_version)
        found.push_back({"version", Level::Ok, "vgpuctl and vgpud are both " + vgpud});
    else
        found.push_back({"version", Level::Warning,
                         fmt::format("vgpuctl is {}, vgpud is {}", facts.vgpuctl_version, vgpud),
                         "each may lack verbs or options of the other",
                         "install the same release of both, then 'systemctl restart vgpud'"});
    for (const Properties& vf : facts.service.vfs) {
        const std::string agent = text_of(vf, "Agent.Version");
        if (!flag_of(vf, "Agent.Connected") || agent == vgpud) continue;
        found.push_back({"agent-version", Level::Note,
                         fmt::format("{}: the guest's agent is {}", text_of(vf, "Target"), agent),
                         "it may not support all requests of this vgpud",
                         "install vgpu-agent of release " + vgpud + " in the guest"});
    }
}

constexpr std::string_view kNothing = "-";  ///< what text_of() returns for an empty property

void check_state(const HostFacts& facts, Findings& found) {
    if (!facts.service.has_answered) return;
    const std::string message = text_of(facts.service.manager, "StateMessage");
    if (!flag_of(facts.service.manager, "ReadOnly")) {
        if (message == kNothing)
            found.push_back({"state", Level::Ok, "the durable state is trusted"});
        else
            found.push_back({"state", Level::Warning, "the durable state: " + message,
                             "a change was refused",
                             "make sure that vgpud's state_dir has free space and is writable"});
        return;
    }
    found.push_back(
        {"state", Level::Problem, "vgpud is read-only: " + message,
         "VFs keep running, but the GPU of this state file, or every GPU if it is the file of "
         "an apply, cannot be changed",
         "'systemctl stop vgpud'; 'vgpud --recover-state'; 'systemctl start vgpud'"});
}

void check_gpus(const HostFacts& facts, Findings& found) {
    for (const Properties& gpu : facts.service.gpus) {
        const std::string id = text_of(gpu, "Id"), state = text_of(gpu, "State");
        if (state == "ok")
            found.push_back({"gpu", Level::Ok, id + " is in service"});
        else
            found.push_back({"gpu", Level::Problem,
                             fmt::format("{} is {}: {}", id, state, text_of(gpu, "StateMessage")),
                             "requests for it and its VFs are refused",
                             "vgpud retries by itself; 'journalctl -u vgpud' shows why it fails"});
        if (const std::uint64_t resets = number_of(gpu, "DeviceResets"); resets > 0)
            found.push_back({"gpu-device-resets", Level::Warning,
                             fmt::format("{} was reset as a whole {} times", id, resets),
                             "every VF of the GPU lost its work each time",
                             "'vgpuctl events' shows which VF hung before; send 'vgpuctl report'"});
        if (const std::uint64_t lost = number_of(gpu, "EventsLost"); lost > 0)
            found.push_back({"gpu-events-lost", Level::Note,
                             fmt::format("{}: {} events of the PF core came too fast", id, lost),
                             "shares were corrected; some events are missing in 'events'",
                             "give vgpud more CPU time if this number grows"});
    }
}

/// Healthy VFs give no finding, because there may be many.
void check_vfs(const HostFacts& facts, Findings& found) {
    for (const Properties& vf : facts.service.vfs) {
        const std::string target = text_of(vf, "Target"), state = text_of(vf, "State");
        if (const std::string command = recovery_command(vf); !command.empty())
            found.push_back(
                {"vf-state", Level::Warning, fmt::format("{} is {}", target, state),
                 "it gets no engine time",
                 fmt::format("'vgpuctl show {}' shows why; then '{}'", target, command)});
        if (const std::string condition = text_of(vf, "Condition"); condition != kNothing)
            found.push_back(
                {"vf-condition", Level::Warning, fmt::format("{}: {}", target, condition),
                 "the VF differs from its definition",
                 condition.starts_with("its name")
                     ? fmt::format("'vgpuctl set {} --name NEW'", target)
                     : fmt::format("vgpud tries again by itself; '{}' drops the definition",
                                   drop_command(vf))});
        if (const std::string orphan = text_of(vf, "Orphan"); orphan != kNothing)
            found.push_back({"vf-orphan", Level::Warning, fmt::format("{}: {}", target, orphan),
                             "no other owner can claim the VF",
                             fmt::format("if its owner is gone: '{}'", end_claim_command(vf))});
        if (number_of(vf, "GuardLevel") > 0)
            found.push_back({"vf-guard", Level::Warning,
                             fmt::format("{} exceeds a guard limit (level {})", target,
                                         number_of(vf, "GuardLevel")),
                             "its guest resets or interrupts more than a normal driver does",
                             "read the guest's kernel log"});
    }
}

// --- the kernel

/// True if this host has an AMD GPU with SR-IOV, which vgpu_pf would drive.
[[nodiscard]] bool has_sriov_gpu(const HostFacts& facts) {
    return std::any_of(facts.pci.functions.begin(), facts.pci.functions.end(),
                       [](const PciFunction& one) { return is_amd_gpu(one) && one.sriov; });
}

/// True if the host has a GPU that can have hardware VFs. On another host, a missing requirement of
/// hardware VFs, such as an IOMMU, is not a fault.
[[nodiscard]] bool can_have_hardware_vfs(const HostFacts& facts) {
    return has_sriov_gpu(facts) || !facts.vendor_pfs.empty();
}

/// True if doctor checks the function: an AMD GPU, with or without SR-IOV, or one of vendor_pfs.
[[nodiscard]] bool is_checked_gpu(const HostFacts& facts, const PciFunction& one) {
    return is_amd_gpu(one) || std::ranges::any_of(facts.vendor_pfs, [&one](const VendorPf& pf) {
               return pf.address == one.address;
           });
}

/// Checks that the kernel has each needed option, as a built-in ("y") or as a module ("m").
void check_kernel_config(const HostFacts& facts, Findings& found) {
    if (!facts.kernel_config) {
        found.push_back({"kernel-config", Level::Note,
                         "the configuration of kernel " + facts.kernel_release + " is not readable",
                         "whether it has SR-IOV and VFIO was not checked",
                         "install /boot/config-" + facts.kernel_release +
                             ", or a kernel with CONFIG_IKCONFIG_PROC"});
        return;
    }
    struct Needed {
        std::string_view name, why;
    };
    constexpr std::array kNeeded{
        Needed{"CONFIG_PCI_IOV", "no PF driver can enable virtual functions without it"},
        Needed{"CONFIG_VFIO_PCI", "VFs of real silicon reach a VM through vfio-pci"},
        Needed{"CONFIG_IOMMU_SUPPORT", "without it a VF's DMA can reach memory outside its VM"}};
    bool is_complete = true;
    for (const Needed& one : kNeeded) {
        const auto at = facts.kernel_config->find(std::string(one.name));
        if (at != facts.kernel_config->end() && (at->second == "y" || at->second == "m")) continue;
        is_complete = false;
        found.push_back({"kernel-config",
                         can_have_hardware_vfs(facts) ? Level::Warning : Level::Note,
                         fmt::format("kernel {} has no {}", facts.kernel_release, one.name),
                         std::string(one.why), "use a kernel of the distribution that has it"});
    }
    if (is_complete)
        found.push_back({"kernel-config", Level::Ok, "the kernel has SR-IOV, VFIO and an IOMMU"});
}

/// Checks the module vgpu_pf. Only AMD GPUs with SR-IOV need the module, because softgpu's PF core
/// is a process.
void check_module(const HostFacts& facts, Findings& found) {
    if (facts.module.is_loaded) {
        found.push_back(
            {"module", Level::Ok,
             fmt::format("vgpu_pf is loaded, {} PF devices", facts.module.pf_devices.size())});
        return;
    }
    const bool is_needed = has_sriov_gpu(facts);
    const std::string why = is_needed ? "vgpu_pf would drive the GPU with SR-IOV of this machine"
                                      : "only hardware GPUs need vgpu_pf; softgpu does not";
    if (facts.module.is_available)
        found.push_back({"module", is_needed ? Level::Warning : Level::Note,
                         "vgpu_pf is installed, but not loaded", why,
                         "'modprobe vgpu_pf'; then 'systemctl restart vgpud'"});
    else
        found.push_back({"module", is_needed ? Level::Warning : Level::Note,
                         "vgpu_pf is not installed for kernel " + facts.kernel_release, why,
                         "'dkms install vgpu-pf/" + facts.vgpuctl_version + "'"});
}

/// Checks that the host has IOMMU groups, which exist only if an IOMMU driver manages devices.
void check_iommu(const HostFacts& facts, Findings& found) {
    if (facts.iommu_groups > 0) {
        found.push_back({"iommu", Level::Ok, fmt::format("{} IOMMU groups", facts.iommu_groups)});
        return;
    }
    std::istringstream words(facts.kernel_command_line);
    std::string off;
    for (std::string word; words >> word;)
        if (word == "iommu=off" || word == "intel_iommu=off" || word == "amd_iommu=off") off = word;
    const std::string what = off.empty() ? "no IOMMU group" : "the kernel command line has " + off;
    found.push_back(
        {"iommu", can_have_hardware_vfs(facts) ? Level::Problem : Level::Note, what,
         "VFs of real silicon cannot be assigned to VMs without an IOMMU; softgpu needs none",
         off.empty() ? "enable VT-d or AMD-Vi in the firmware; on Intel boot with "
                       "intel_iommu=on"
                     : "remove " + off + " and boot again"});
}

// --- PCI

void check_one_gpu(const HostFacts& facts, const PciFunction& gpu, Findings& found);

void check_pci(const HostFacts& facts, Findings& found) {
    if (!facts.pci.error.empty()) {
        found.push_back({"pci", Level::Note, "the PCI bus is not readable: " + facts.pci.error,
                         "GPUs of this machine were not checked",
                         "run 'vgpuctl doctor' as root on the host itself"});
        return;
    }
    bool has_gpu = false;
    for (const PciFunction& one : facts.pci.functions) {
        if (!is_checked_gpu(facts, one) || one.is_vf) continue;
        has_gpu = true;
        check_one_gpu(facts, one, found);
    }
    if (!has_gpu && facts.vendor_pfs.empty())
        found.push_back({"pci-gpu", Level::Note, "this machine has no GPU that could have VFs",
                         "only software GPUs (softgpu) can be shared here", ""});
}

/// Checks that all VF BARs have addresses. Otherwise Linux does not enable VFs
/// (drivers/pci/iov.c).
void check_vf_bars(const PciFunction& gpu, Findings& found) {
    if (gpu.sriov->has_vf_bars_assigned) {
        found.push_back({"pci-vf-bars", Level::Ok, gpu.address + ": its VFs have address space"});
        return;
    }
    found.push_back({"pci-vf-bars", Level::Problem,
                     gpu.address + ": the VFs' BARs have no address space",
                     "sriov_numvfs fails with ENOMEM",
                     "enable 'Above 4G decoding' and 'SR-IOV' in the firmware, or boot with "
                     "pci=realloc,assign-busses"});
}

/// Checks that all VFs can be addressed. VFs beyond function 7 require ARI in the GPU, and ARI
/// forwarding in the port above.
void check_ari(const HostFacts& facts, const PciFunction& gpu, Findings& found) {
    const SriovFacts& sriov = *gpu.sriov;
    constexpr unsigned kFunctionsPerDevice = 8;
    const unsigned stride = std::max(1u, sriov.vf_stride);
    // routing id of the last VF, relative to the PF's bus and device (PCIe, SR-IOV, "First VF
    // Offset" and "VF Stride")
    const unsigned last =
        gpu.function + sriov.first_vf_offset + stride * (std::max(1u, sriov.total_vfs) - 1);
    const PciFunction* port = port_above(facts.pci.functions, gpu);
    const bool is_enabled =
        sriov.is_ari_hierarchy || (port != nullptr && port->is_forwarding_ari.value_or(false));
    if (is_enabled || last < kFunctionsPerDevice) {
        found.push_back({"pci-ari", Level::Ok, gpu.address + ": all its VFs can be addressed"});
        return;
    }
    const bool can_enable = gpu.has_ari && port != nullptr && port->is_forwarding_ari.has_value();
    // the number of VFs up to function 7
    const unsigned usable =
        gpu.function + sriov.first_vf_offset >= kFunctionsPerDevice
            ? 0
            : (kFunctionsPerDevice - 1 - gpu.function - sriov.first_vf_offset) / stride + 1;
    found.push_back({"pci-ari", Level::Warning,
                     fmt::format("{}: ARI is {}; {} of {} VFs can be addressed without another bus",
                                 gpu.address, can_enable ? "off" : "not possible in this slot",
                                 usable, sriov.total_vfs),
                     "VFs beyond function 7 need another bus number, which the bridge may not have",
                     can_enable
                         ? "enable ARI in the firmware, or boot with pci=realloc,assign-busses"
                         : "use a slot whose root port forwards ARI"});
}

/// Checks ACS of the port above the GPU. ACS decides whether requests between functions below the
/// port go through the IOMMU (PCIe).
void check_acs(const HostFacts& facts, const PciFunction& gpu, Findings& found) {
    // PCIe, ACS Control Register: source validation, P2P request redirect, P2P completion redirect,
    // upstream forwarding
    constexpr unsigned kRedirect = 0x1 | 0x4 | 0x8 | 0x10;
    const PciFunction* port = port_above(facts.pci.functions, gpu);
    if (port == nullptr) {
        found.push_back({"pci-acs", Level::Ok, gpu.address + ": is part of the root complex"});
        return;
    }
    if (!port->acs_control) {
        found.push_back(
            {"pci-acs", Level::Warning,
             fmt::format("{}: the port above ({}) has no ACS", gpu.address, port->address),
             "VFs and other devices below it could reach each other past the IOMMU, "
             "so they are in one group and go to one VM only",
             "use a slot below a root port with ACS"});
        return;
    }
    if ((*port->acs_control & kRedirect) == kRedirect) {
        found.push_back({"pci-acs", Level::Ok, gpu.address + ": the port above isolates it"});
        return;
    }
    found.push_back({"pci-acs", Level::Warning,
                     fmt::format("{}: ACS of the port above ({}) is not enabled ({:#06x})",
                                 gpu.address, port->address, *port->acs_control),
                     "VFs could reach each other past the IOMMU",
                     "enable the IOMMU and ACS in the firmware; the kernel then enables ACS"});
}

/// Checks that no other device is in the GPU's IOMMU group. Bridges do not count, because they stay
/// on the host. Functions of the same card do not count, because a VM gets them together.
void check_group(const HostFacts& facts, const PciFunction& gpu, Findings& found) {
    const auto at = facts.group_members.find(gpu.address);
    if (at == facts.group_members.end()) return;
    std::vector<std::string> strangers;
    for (const std::string& member : at->second) {
        const auto known =
            std::find_if(facts.pci.functions.begin(), facts.pci.functions.end(),
                         [&member](const PciFunction& one) { return one.address == member; });
        const bool is_bridge = known != facts.pci.functions.end() && known->is_bridge;
        const bool is_same_card =
            member.substr(0, member.find('.')) == gpu.address.substr(0, gpu.address.find('.'));
        if (!is_bridge && !is_same_card) strangers.push_back(member);
    }
    if (strangers.empty()) {
        found.push_back({"pci-group", Level::Ok, gpu.address + ": has its IOMMU group to itself"});
        return;
    }
    found.push_back(
        {"pci-group", Level::Warning,
         fmt::format("{}: shares its IOMMU group with {}", gpu.address, fmt::join(strangers, ", ")),
         "they can only be assigned together", "move the card or the others to another slot"});
}

void check_one_gpu(const HostFacts& facts, const PciFunction& gpu, Findings& found) {
    if (!gpu.has_extended_config) {
        found.push_back({"pci-sriov", Level::Note,
                         gpu.address + ": its PCIe capabilities are not readable",
                         "SR-IOV, ARI and ACS were not checked", "run 'vgpuctl doctor' as root"});
        return;
    }
    if (!gpu.sriov) {
        found.push_back({"pci-sriov", Level::Note,
                         fmt::format("{} ({:04x}:{:04x}) has no SR-IOV", gpu.address, gpu.vendor_id,
                                     gpu.device_id),
                         "it can only be assigned to one VM as a whole", ""});
        return;
    }
    found.push_back({"pci-sriov", Level::Ok,
                     fmt::format("{} has SR-IOV: {} VFs, {} enabled", gpu.address,
                                 gpu.sriov->total_vfs, gpu.sriov->enabled_vfs)});
    check_vf_bars(gpu, found);
    check_ari(facts, gpu, found);
    check_acs(facts, gpu, found);
    check_group(facts, gpu, found);
}

// --- QEMU and files

struct Release {
    unsigned first = 0, second = 0;
};

/// The first "N.M" in `text`, if any.
std::optional<Release> release_in(std::string_view text) {
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at != end; ++at) {
        Release release;
        const auto first = std::from_chars(at, end, release.first);
        if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') continue;
        const auto second = std::from_chars(first.ptr + 1, end, release.second);
        if (second.ec == std::errc{}) return release;
    }
    return {};
}

/// Checks QEMU's release. Searches the whole version line for the release, because distributions
/// add other words.
void check_qemu(const HostFacts& facts, Findings& found) {
    constexpr unsigned kFirst = 10, kSecond = 1;  // QEMU 10.1
    const std::string why =
        "QEMU 10.1 is the first with vfio-user-pci, through which a VM gets a VF "
        "of softgpu";
    const std::string fix = "install QEMU 10.1 or newer";
    if (!facts.qemu_version) {
        found.push_back(
            {"qemu", Level::Note, "qemu-system-x86_64 does not answer --version", why, fix});
        return;
    }
    const auto release = release_in(*facts.qemu_version);
    const bool is_enough = release && (release->first > kFirst ||
                                       (release->first == kFirst && release->second >= kSecond));
    if (is_enough)
        found.push_back({"qemu", Level::Ok, *facts.qemu_version});
    else
        found.push_back({"qemu", Level::Warning, *facts.qemu_version, why, fix});
}

/// Checks file permissions, which are the only protection of a VF's socket.
void check_files(const HostFacts& facts, Findings& found) {
    constexpr unsigned kOthersWrite = 0002, kOthersReadWrite = 0006;
    const FileFacts& dir = facts.run_dir;
    if (!dir.exists && facts.service.has_answered)
        found.push_back({"run-dir", Level::Note, dir.path + " is missing",
                         "vgpud has another run_dir, or runs on another machine", ""});
    if (dir.exists && !dir.has_expected_type)
        found.push_back({"run-dir", Level::Problem, dir.path + " is not a directory",
                         "vgpud cannot create its sockets there", "remove it and start vgpud"});
    if (dir.exists && dir.has_expected_type) {
        const bool is_open = (dir.mode & kOthersWrite) != 0;
        if (is_open)
            found.push_back({"run-dir", Level::Problem,
                             fmt::format("any user may write to {} ({:04o})", dir.path, dir.mode),
                             "any user could replace a VF's socket with their own socket",
                             "chmod o-w " + dir.path});
        else
            found.push_back({"run-dir", Level::Ok, fmt::format("{} ({:04o})", dir.path, dir.mode)});
    }
    for (const FileFacts& socket : facts.vf_sockets) {
        if (!socket.exists || !socket.has_expected_type)
            found.push_back(
                {"vf-socket", Level::Warning,
                 fmt::format("{} is {}", socket.path, socket.exists ? "not a socket" : "missing"),
                 "QEMU cannot attach to that VF",
                 "softgpu creates it at start; see its log in the same directory"});
        else if ((socket.mode & kOthersReadWrite) != 0)
            found.push_back(
                {"vf-socket", Level::Warning,
                 fmt::format("any user may attach to {} ({:04o})", socket.path, socket.mode),
                 "the first client gets the VF", "chmod o-rw " + socket.path});
    }
}

// --- text

Colour colour_of(Level level) {
    constexpr std::array kColours{Colour::Green, Colour::Blue, Colour::Yellow, Colour::Red};
    return kColours.at(static_cast<std::size_t>(level));
}

/// "1 note", "2 notes": `one` and `more` are the singular and the plural.
std::string counted(const Findings& findings, Level level, std::string_view one,
                    std::string_view more) {
    const auto count = std::count_if(findings.begin(), findings.end(),
                                     [level](const Finding& f) { return f.level == level; });
    return fmt::format("{} {}", count, count == 1 ? one : more);
}

}  // namespace

std::string_view name_of(Level level) {
    constexpr std::array<std::string_view, 4> kNames{"ok", "note", "warning", "problem"};
    return kNames.at(static_cast<std::size_t>(level));
}

std::vector<Finding> diagnose(const HostFacts& facts) {
    constexpr std::array kChecks{check_service, check_versions, check_state, check_gpus,
                                 check_vfs,     check_files,    check_qemu,  check_kernel_config,
                                 check_module,  check_iommu,    check_pci,   check_vendor_pfs};
    Findings found;
    for (const auto check : kChecks) check(facts, found);
    return found;
}

Level worst_of(const std::vector<Finding>& findings) {
    Level worst = Level::Ok;
    for (const Finding& finding : findings) worst = std::max(worst, finding.level);
    return worst;
}

std::string findings_text(const std::vector<Finding>& findings, bool uses_colour) {
    // kIndent: columns of the level; kAfterLabel: columns of the level and of "why: " or "fix: "
    constexpr std::size_t kIndent = 9, kAfterLabel = 14;
    std::string text;
    for (const Finding& finding : findings) {
        const std::string level = fmt::format("{:<{}}", name_of(finding.level), kIndent - 1);
        text += painted(level, colour_of(finding.level), uses_colour) + " " +
                wrapped_text(finding.id + ": " + finding.what, kIndent, kIndent);
        for (const auto& [label, words] :
             {std::pair("why: ", &finding.why), std::pair("fix: ", &finding.fix)})
            if (!words->empty())
                text += std::string(kIndent, ' ') + label +
                        wrapped_text(*words, kAfterLabel, kAfterLabel);
    }
    return text + fmt::format("\n{}, {}, {}.\n",
                              counted(findings, Level::Problem, "problem", "problems"),
                              counted(findings, Level::Warning, "warning", "warnings"),
                              counted(findings, Level::Note, "note", "notes"));
}

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Finding& finding : findings)
        list.push_back({{"id", finding.id},
                        {"level", name_of(finding.level)},
                        {"what", finding.what},
                        {"why", finding.why},
                        {"fix", finding.fix}});
    return {{"worst", name_of(worst_of(findings))}, {"findings", std::move(list)}};
}

}  // namespace vgpu::cli
