// SPDX-License-Identifier: MIT
//
// vgpu-card-figures: measures how long vgpud takes to find the VFs of vendors' GPUs. There are 4
// PFs with 63 VFs each, in a directory that looks like sysfs. In a real sysfs, each file also costs
// a call of the driver.
#include "daemon/backend/sriov/discovery.h"
#include "daemon/backend/sriov/host_sysfs.h"
#include "tests/support/stack/temp_dir.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace vgpu::daemon::sriov {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPfs = 4, kVfs = 63, kFunctions = 8, kRounds = 21;

void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text << "\n";
}

void add_pf(const std::string& root, unsigned pf) {
    const std::string devices = root + "/sys/bus/pci/devices/";
    const std::string bus = fmt::format("0000:{:02x}:", pf + 3);
    const std::string node = devices + bus + "00.0/";
    for (const auto& [file, text] :
         {std::pair("vendor", "0x8086"), std::pair("device", "0xe212"),
          std::pair("subsystem_vendor", "0x8086"), std::pair("subsystem_device", "0x0000"),
          std::pair("revision", "0x01"), std::pair("class", "0x030000"),
          std::pair("sriov_totalvfs", "63"), std::pair("sriov_drivers_autoprobe", "0")})
        write(node + file, text);
    fs::create_directory_symlink("../../../bus/pci/drivers/xe", node + "driver");
    for (unsigned vf = 1; vf <= kVfs; ++vf) {
        const std::string address =
            fmt::format("{}{:02x}.{}", bus, vf / kFunctions, vf % kFunctions);
        write(devices + address + "/enable", "0");
        fs::create_directory_symlink("../../../bus/pci/drivers/vfio-pci",
                                     devices + address + "/driver");
        fs::create_directory_symlink("../" + address, node + fmt::format("virtfn{}", vf - 1));
    }
}

int run() {
    const test::TempDir root;
    for (unsigned pf = 0; pf < kPfs; ++pf) add_pf(root.path().string(), pf);
    HostSysfs files(root.path().string());
    std::vector<double> times;
    for (unsigned round = 0; round < kRounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        const Discovery found = find_pfs(files);
        times.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count());
        if (found.pfs.size() != kPfs || found.pfs.back().facts.vfs.size() != kVfs) return 1;
    }
    std::ranges::sort(times);
    fmt::print("  {:<58} {:>14.1f} ms   {}\n", "4 PFs with 63 VFs each are found",
               times.at(times.size() / 2), "<= 50 ms");
    return 0;
}

}  // namespace
}  // namespace vgpu::daemon::sriov

int main() {
    return vgpu::daemon::sriov::run();
}
