// SPDX-License-Identifier: MIT
#include "daemon/service/config/config.h"

#include "daemon/backend/vf_limit.h"
#include "daemon/service/input/json_section.h"
#include "daemon/service/words.h"
#include "pf-driver/process/socket_path.h"
#include "pf-driver/uapi/vgpu_pf.h"
#include "text/json_document.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

SoftgpuConfig softgpu_of(const Json& json, const std::string& path, Error& error) {
    constexpr std::uint32_t kMaxVramMb = 1u << 20, kVramUnitMb = 16;
    constexpr std::uint32_t kMaxCus = 64, kMaxThreads = 64;
    constexpr std::array<std::string_view, 2> kDoorbellModes{"trap", "poll"};
    constexpr std::array<std::string_view, 2> kIsaTiers{"interpreter", "translator"};
    SoftgpuConfig config;
    JsonSection section(json, path, error);
    section.only({"vfs", "vram_mb", "aperture_mb", "cus", "threads", "true_copy", "doorbell_mode",
                  "isa_tier", "args", "pf_args"});
    section.number("vfs", {1, VGPU_PF_MAX_VFS}, config.vfs);
    section.number("vram_mb", {64, kMaxVramMb}, config.vram_mb);
    section.number("aperture_mb", {16, kMaxVramMb}, config.aperture_mb);
    section.number("cus", {1, kMaxCus}, config.cus);
    section.number("threads", {1, kMaxThreads}, config.threads);
    section.flag("true_copy", config.is_true_copy);
    if (config.vram_mb % kVramUnitMb != 0) section.complain("vram_mb", "is not a multiple of 16");
    if (!std::has_single_bit(config.aperture_mb))
        section.complain("aperture_mb", "is not a power of two, such as 256");
    section.text("doorbell_mode", config.doorbell_mode);
    section.text("isa_tier", config.isa_tier);
    section.texts("args", config.args);
    section.texts("pf_args", config.pf_args);
    if (std::find(kDoorbellModes.begin(), kDoorbellModes.end(), config.doorbell_mode) ==
        kDoorbellModes.end())
        section.complain("doorbell_mode", "is neither 'trap' nor 'poll'");
    if (std::ranges::find(kIsaTiers, config.isa_tier) == kIsaTiers.end())
        section.complain("isa_tier", "is neither 'interpreter' nor 'translator'");
    return config;
}

AttachConfig attach_of(const Json& json, const std::string& path, Error& error) {
    AttachConfig config;
    JsonSection section(json, path, error);
    section.only({"uapi", "vf_socket_dir"});
    section.text("uapi", config.uapi_socket);
    section.text("vf_socket_dir", config.vf_socket_dir);
    if (config.uapi_socket.empty()) section.complain("uapi", "is missing");
    return config;
}

/// True if `text` has the form `form`: 'x' is a lower-case hexadecimal digit, '7' an octal digit,
/// and other characters stand for themselves.
bool has_form(std::string_view text, std::string_view form) {
    return std::ranges::equal(text, form, [](char letter, char kind) {
        if (kind == 'x') return std::isdigit(letter) != 0 || (letter >= 'a' && letter <= 'f');
        return kind == '7' ? letter >= '0' && letter <= '7' : letter == kind;
    });
}

/// Reads a member that is the word `off` (`flag` becomes false) or `on` (true). If the member is
/// absent, `flag` stays. Complains about other words.
void read_word(JsonSection& section, const std::string& key, std::string_view off,
               std::string_view on, bool& flag) {
    std::string word(flag ? on : off);
    section.text(key, word);
    if (word != off && word != on)
        section.complain(key, fmt::format("is neither '{}' nor '{}'", off, on));
    flag = word == on;
}

/// The vendor and device IDs in "ids"; none if absent or invalid.
std::optional<std::pair<std::uint16_t, std::uint16_t>> model_in(JsonSection& section) {
    constexpr int kHexadecimal = 16;
    constexpr std::size_t kDevice = 5;  ///< where the second number begins
    std::string ids;
    section.text("ids", ids);
    if (ids.empty()) return {};
    if (!has_form(ids, "xxxx:xxxx")) {
        section.complain("ids", fmt::format("'{}' is not VENDOR:DEVICE in lower case, such as "
                                            "8086:e212",
                                            ids));
        return {};
    }
    const auto number = [&ids](std::size_t at) {
        return static_cast<std::uint16_t>(std::stoul(ids.substr(at), nullptr, kHexadecimal));
    };
    return std::pair{number(0), number(kDevice)};
}

PciConfig pci_of(const Json& json, const std::string& path, Error& error) {
    constexpr std::uint32_t kMaxVramMb = 1u << 22, kMaxPfQuantumMs = 1000;
    PciConfig config;
    JsonSection section(json, path, error);
    section.only(
        {"address", "ids", "manage", "contracts", "vfs", "vram_mb", "pf_quantum_ms", "busy_time"});
    section.text("address", config.address);
    bool is_full = false;
    read_word(section, "manage", "observe", "full", is_full);
    config.is_observing = !is_full;
    read_word(section, "contracts", "refuse", "approximate", config.accepts_approximations);
    section.number("vfs", {0, kMaxVfsPerGpu}, config.vfs);
    section.number("vram_mb", {0, kMaxVramMb}, config.vram_mb);
    section.number("pf_quantum_ms", {1, kMaxPfQuantumMs}, config.pf_quantum_ms);
    section.flag("busy_time", config.counts_busy_time);
    if (config.address.empty())
        section.complain("address", "is missing; 'lspci -D' shows addresses of PFs");
    else if (!has_form(config.address, "xxxx:xx:xx.7"))
        section.complain("address", fmt::format("'{}' is not a PCI address in lower case with its "
                                                "domain, such as 0000:03:00.0",
                                                config.address));
    config.model = model_in(section);
    return config;
}

/// Complains about values of quantum_us and max_gap_ms that a vendor's PF driver cannot keep.
void check_settings_of_pci(JsonSection& section, const GpuConfig& config) {
    constexpr std::uint32_t kUnitUs = 1000;
    if (section.find("max_gap_ms") != nullptr)
        section.complain("max_gap_ms",
                         "is not offered for a GPU with 'pci'; leave it out, and set it "
                         "in the profiles of its VFs");
    if (config.quantum_us % kUnitUs != 0)
        section.complain("quantum_us",
                         fmt::format("{} is not a whole number of milliseconds, which a "
                                     "GPU with 'pci' needs",
                                     config.quantum_us));
}

GpuConfig gpu_of(const Json& json, const std::string& path, Error& error) {
    GpuConfig config;
    JsonSection section(json, path, error);
    section.only({"id", "quantum_us", "max_gap_ms", "softgpu", "attach", "pci"});
    section.text("id", config.id);
    section.number("quantum_us", {scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs},
                   config.quantum_us);
    section.number("max_gap_ms", {kMinGapMs, kMaxGapMs}, config.max_gap_ms);
    if (!is_valid_name(config.id)) section.complain("id", "is missing or is not a valid name");
    const Json* softgpu = section.find("softgpu");
    const Json* attach = section.find("attach");
    const Json* pci = section.find("pci");
    if ((softgpu != nullptr) + (attach != nullptr) + (pci != nullptr) != 1)
        section.complain("", "must have exactly one of 'softgpu', 'attach' and 'pci'");
    if (softgpu != nullptr)
        config.softgpu = softgpu_of(*softgpu, section.path_of("softgpu"), error);
    if (attach != nullptr) config.attach = attach_of(*attach, section.path_of("attach"), error);
    if (pci == nullptr) return config;
    config.pci = pci_of(*pci, section.path_of("pci"), error);
    check_settings_of_pci(section, config);
    return config;
}

/// The GPUs for "auto". The number of a GPU is the number of its device, so that gpu1 keeps its id
/// and its records while /dev/vgpu-pf0 is missing.
std::vector<GpuConfig> gpus_present(const std::vector<std::string>& pf_devices) {
    if (pf_devices.empty()) return {{.id = "gpu0", .softgpu = SoftgpuConfig{}, .attach = {}}};
    std::vector<GpuConfig> gpus;
    for (const std::string& device : pf_devices) {
        const std::size_t name = device.find_last_not_of("0123456789") + 1;
        gpus.push_back({.id = "gpu" + device.substr(name),
                        .softgpu = {},
                        .attach = AttachConfig{.uapi_socket = device, .vf_socket_dir = ""}});
    }
    return gpus;
}

void read_gpus(JsonSection& root, const std::vector<std::string>& pf_devices, Config& config,
               Error& error) {
    const Json* gpus = root.find("gpus");
    if (gpus != nullptr && *gpus == "auto") {
        config.gpus = gpus_present(pf_devices);
        return;
    }
    if (gpus == nullptr || !gpus->is_array() || gpus->empty()) {
        root.complain("gpus", "must be a list of at least one GPU, or \"auto\"");
        return;
    }
    for (std::size_t i = 0; i < gpus->size(); ++i) {
        GpuConfig gpu = gpu_of((*gpus)[i], root.path_of(fmt::format("gpus/{}", i)), error);
        for (const GpuConfig& other : config.gpus) {
            if (other.id == gpu.id)
                root.complain(fmt::format("gpus/{}/id", i),
                              fmt::format("'{}' is used twice", gpu.id));
            if (other.pci && gpu.pci && other.pci->address == gpu.pci->address)
                root.complain(fmt::format("gpus/{}/pci/address", i),
                              fmt::format("'{}' is used twice", gpu.pci->address));
        }
        config.gpus.push_back(std::move(gpu));
    }
}

/// Checks that socket paths do not exceed the limit of the kernel and QEMU. `longest`: the longest
/// socket path that results from the value of `key`.
void check_socket(JsonSection& root, const std::string& key, const std::string& longest) {
    if (longest.size() <= VGPU_SOCKET_PATH_MAX) return;
    root.complain(
        key, fmt::format("is {} bytes too long: the socket {} would have {} bytes; the limit is {}",
                         longest.size() - VGPU_SOCKET_PATH_MAX, longest, longest.size(),
                         VGPU_SOCKET_PATH_MAX));
}

/// Checks the longest socket paths of VFs and of VMs. Paths of an engine's jobs, such as Slurm's,
/// may be longer; they are checked when they are made (VmSocketsPort::link()).
void check_sockets(JsonSection& root, const Config& config) {
    constexpr std::string_view kLongestOfVf = "vf16.agent.sock";
    constexpr std::string_view kLongestOfVm = "00000000-0000-0000-0000-000000000000/15.agent.sock";
    std::string longest = fmt::format("{}/vm/{}", config.run_dir, kLongestOfVm);
    for (std::size_t i = 0; i < config.gpus.size(); ++i) {
        const GpuConfig& gpu = config.gpus[i];
        std::string of_gpu = fmt::format("{}/{}/{}", config.run_dir, gpu.id, kLongestOfVf);
        if (gpu.softgpu && of_gpu.size() > longest.size()) longest = std::move(of_gpu);
        if (!gpu.attach) continue;
        const std::string key = fmt::format("gpus/{}/attach/", i);
        check_socket(root, key + "uapi", gpu.attach->uapi_socket);
        if (!gpu.attach->vf_socket_dir.empty())
            check_socket(root, key + "vf_socket_dir",
                         fmt::format("{}/{}", gpu.attach->vf_socket_dir, kLongestOfVf));
    }
    check_socket(root, "run_dir", longest);
}

/// Rejects unknown members, so that a misspelt member is not ignored.
Config config_of(const Json& json, const std::string& name,
                 const std::vector<std::string>& pf_devices, Error& error) {
    Config config;
    JsonSection root(json, name + ":", error);
    root.only({"$schema", "state_dir", "run_dir", "libvirt", "programs", "gpus"});
    root.text("state_dir", config.state_dir);
    root.text("run_dir", config.run_dir);
    root.text("libvirt", config.libvirt_uri);
    if (const Json* programs = root.find("programs")) {
        JsonSection section(*programs, root.path_of("programs"), error);
        section.only({"softgpu", "vgpu_pf", "vgpu_libvirt"});
        section.text("softgpu", config.softgpu_program);
        section.text("vgpu_pf", config.pf_program);
        section.text("vgpu_libvirt", config.libvirt_program);
    }
    read_gpus(root, pf_devices, config, error);
    check_sockets(root, config);
    return config;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& name,
                            const std::vector<std::string>& pf_devices) {
    const auto json = text::read_json(text, text::Comments::Allowed);
    if (!json) return fail(ErrorId::ConfigInvalid, fmt::format("{}: {}", name, json.error()));
    Error error{.id = ErrorId::ConfigInvalid, .cause = ""};
    Config config = config_of(*json, name, pf_devices, error);
    if (!error.cause.empty()) return tl::make_unexpected(error);
    return config;
}

}  // namespace vgpu::daemon
