// SPDX-License-Identifier: MIT
#include "vf-agent/facts.h"

#include "text/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace vgpu::agent {

namespace {

constexpr std::size_t kMaxLine = 256;    // bytes
constexpr std::size_t kMaxNames = 8192;  // per directory
constexpr std::size_t kMaxFds = 65536;   // per scan of all processes
constexpr std::string_view kAmd = "0x1002";
constexpr std::string_view kVega10Vf = "0x686c";

/// The number at the start of a text, after blanks; 0 if there is none.
std::uint64_t number_of(std::string_view text, int base = 10) {
    std::uint64_t number = 0;
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    std::from_chars(text.data(), text.data() + text.size(), number, base);
    return number;
}

/// True if the device is an AMD display controller (PCI base class 03h) or processing accelerator
/// (12h).
bool is_gpu(const fs::path& device) {
    const std::string kind = line_of(device / "class");
    return line_of(device / "vendor") == kAmd &&
           (kind.starts_with("0x03") || kind.starts_with("0x12"));
}

/// The last component of a link's target; empty if the link is unreadable.
std::string target_name(const fs::path& link) {
    std::error_code error;
    return fs::read_symlink(link, error).filename().string();
}

/// Reads lines "name value" (KFD's properties) or "name:\tvalue" (fdinfo).
std::map<std::string, std::string> pairs_of(const fs::path& file) {
    constexpr int kMaxPairs = 128;
    std::map<std::string, std::string> pairs;
    std::ifstream stream(file);
    std::string line;
    for (int i = 0; i < kMaxPairs && std::getline(stream, line); ++i) {
        std::istringstream words(line.substr(0, kMaxLine));
        std::string name, value;
        words >> name >> value;
        if (name.ends_with(':')) name.pop_back();
        pairs[name] = value;
    }
    return pairs;
}

/// KFD's location_id of a function such as "0000:00:05.0": bus << 8 | device << 3 | function, in
/// decimal. "" if the address is too short.
std::string location_of(const std::string& pci_address) {
    const std::string_view text = pci_address;
    if (text.size() < 12) return "";
    const std::uint64_t location = number_of(text.substr(5, 2), 16) << 8 |
                                   number_of(text.substr(8, 2), 16) << 3 |
                                   number_of(text.substr(11, 1), 16);
    return std::to_string(location);
}

/// Adds up the VRAM of one process's DRM clients on this VF. A client with several descriptors
/// counts once.
class DrmClients {
public:
    explicit DrmClients(std::string pci_address) : pci_address_(std::move(pci_address)) {}

    void add(const fs::path& fdinfo) {
        auto facts = pairs_of(fdinfo);
        if (facts["drm-driver"] != "amdgpu" || facts["drm-pdev"] != pci_address_) return;
        if (!client_ids_.insert(facts["drm-client-id"]).second) return;
        constexpr std::uint64_t kKiB = 1024;
        vram_bytes_ += number_of(facts["drm-memory-vram"]) * kKiB;
    }
    [[nodiscard]] bool is_empty() const { return client_ids_.empty(); }
    [[nodiscard]] std::uint64_t vram_bytes() const { return vram_bytes_; }

private:
    std::string pci_address_;
    std::set<std::string> client_ids_;
    std::uint64_t vram_bytes_ = 0;
};

/// Calls `visit` for every open file of every process. Leaves out files above kMaxFds and names
/// above kMaxNames, to bound the time. False if it may have left out files.
template <typename Visit> bool scan_fds(const fs::path& proc, Visit visit) {
    std::size_t left = kMaxFds;
    const std::vector<std::string> processes = names_in(proc);
    bool is_complete = processes.size() < kMaxNames;
    for (const std::string& name : processes) {
        const int pid = pid_of(name);
        if (pid <= 0) continue;
        const std::vector<std::string> fds = names_in(proc / name / "fd");
        is_complete = is_complete && fds.size() < kMaxNames;
        for (const std::string& fd : fds) {
            if (left-- == 0) return false;
            std::error_code error;
            visit(pid, fd, fs::read_symlink(proc / name / "fd" / fd, error).string());
        }
    }
    return is_complete;
}

}  // namespace

std::string line_of(const fs::path& file) {
    std::ifstream stream(file);
    std::array<char, kMaxLine> text{};
    stream.read(text.data(), text.size());
    const std::string_view all(text.data(), static_cast<std::size_t>(stream.gcount()));
    return std::string(all.substr(0, all.find('\n')));
}

std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
        if (names.size() < kMaxNames) names.push_back(at->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

int pid_of(const std::string& text) {
    return text::number_in<int>(text).value_or(-1);
}

Facts::Facts(fs::path root, std::string pci_address)
    : root_(std::move(root)), pci_address_(std::move(pci_address)) {}

std::string Facts::kernel_release() const {
    return line_of(root_ / "proc/sys/kernel/osrelease");
}

std::string Facts::rocr_version() const {
    constexpr std::string_view kName = "libhsa-runtime64.so.";
    for (const char* directory : {"usr/lib/x86_64-linux-gnu", "opt/rocm/lib", "usr/lib64"}) {
        const std::string file = target_name(root_ / directory / "libhsa-runtime64.so.1");
        if (file.starts_with(kName)) return file.substr(kName.size(), kMaxLine);
    }
    return "";
}

/// The VF's directory in sysfs; empty if there is no VF. Facts::Facts() describes how the VF is
/// chosen.
fs::path Facts::device() const {
    const fs::path devices = root_ / "sys/bus/pci/devices";
    if (!pci_address_.empty()) return devices / pci_address_;
    fs::path best;
    int best_rank = 0;
    for (const std::string& name : names_in(devices)) {
        const fs::path candidate = devices / name;
        if (!is_gpu(candidate)) continue;
        const bool is_vf = line_of(candidate / "device") == kVega10Vf;
        const int rank = is_vf ? 3 : target_name(candidate / "driver") == "amdgpu" ? 2 : 1;
        if (rank <= best_rank) continue;
        best = candidate;
        best_rank = rank;
    }
    return best;
}

VfFacts Facts::vf() const {
    const fs::path directory = device();
    if (directory.empty()) return {};
    VfFacts facts{.pci_address = directory.filename().string(),
                  .unique_id = line_of(directory / "unique_id"),
                  .render_node = "",
                  .vram_total_bytes = number_of(line_of(directory / "mem_info_vram_total")),
                  .vram_used_bytes = number_of(line_of(directory / "mem_info_vram_used"))};
    for (const std::string& node : names_in(directory / "drm"))
        if (node.starts_with("renderD") && facts.render_node.empty())
            facts.render_node = "/dev/dri/" + node;
    return facts;
}

DriverFacts Facts::driver() const {
    const fs::path directory = device();
    DriverFacts facts{.name = directory.empty() ? "" : target_name(directory / "driver"),
                      .version = "",
                      .srcversion = ""};
    if (facts.name.empty()) return facts;
    facts.version = line_of(root_ / "sys/module" / facts.name / "version");
    facts.srcversion = line_of(root_ / "sys/module" / facts.name / "srcversion");
    return facts;
}

std::string Facts::kfd_gpu_id(const std::string& pci_address) const {
    const fs::path nodes = root_ / "sys/class/kfd/kfd/topology/nodes";
    for (const std::string& name : names_in(nodes)) {
        const std::string id = line_of(nodes / name / "gpu_id");
        if (id.empty() || id == "0") continue;
        if (pairs_of(nodes / name / "properties")["location_id"] == location_of(pci_address))
            return id;
    }
    return "";
}

std::vector<ProcessFacts> Facts::processes() const {
    const std::string pci_address = vf().pci_address;
    const std::string gpu = kfd_gpu_id(pci_address);
    std::map<int, ProcessFacts> by_pid;
    const fs::path kfd = root_ / "sys/class/kfd/kfd/proc";
    for (const std::string& name : gpu.empty() ? std::vector<std::string>{} : names_in(kfd)) {
        const int pid = pid_of(name);
        if (pid <= 0) continue;
        by_pid[pid].vram_bytes = number_of(line_of(kfd / name / ("vram_" + gpu)));
        for (const std::string& queue : names_in(kfd / name / "queues"))
            if (line_of(kfd / name / "queues" / queue / "gpuid") == gpu) ++by_pid[pid].queues;
    }
    std::map<int, DrmClients> drm_by_pid;
    scan_fds(root_ / "proc", [&](int pid, const std::string& fd, const std::string& target) {
        if (!target.starts_with("/dev/dri/")) return;
        DrmClients& drm = drm_by_pid.try_emplace(pid, pci_address).first->second;
        drm.add(root_ / "proc" / std::to_string(pid) / "fdinfo" / fd);
    });
    for (const auto& [pid, drm] : drm_by_pid)
        if (!drm.is_empty())
            by_pid[pid].vram_bytes = std::max(by_pid[pid].vram_bytes, drm.vram_bytes());
    std::vector<ProcessFacts> list;
    for (auto& [pid, process] : by_pid) {
        process.pid = pid;
        process.comm = line_of(root_ / "proc" / std::to_string(pid) / "comm");
        list.push_back(std::move(process));
    }
    std::stable_sort(list.begin(), list.end(), [](const ProcessFacts& a, const ProcessFacts& b) {
        return a.vram_bytes > b.vram_bytes;
    });
    return list;
}

std::optional<std::vector<int>> Facts::users() const {
    const std::string render_node = vf().render_node;
    std::set<int> pids;
    const auto note_user = [&](int pid, const std::string&, const std::string& target) {
        if (target == "/dev/kfd" || (!render_node.empty() && target == render_node))
            pids.insert(pid);
    };
    if (!scan_fds(root_ / "proc", note_user)) return {};
    return std::vector<int>(pids.begin(), pids.end());
}

}  // namespace vgpu::agent
