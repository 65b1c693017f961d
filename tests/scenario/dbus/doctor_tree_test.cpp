// SPDX-License-Identifier: MIT
//
// vgpuctl doctor as a program on a machine whose /sys/bus/pci is a umockdev tree: it must find
// there, through sysfs, what it finds in a dump of the same configuration spaces.
#include "tests/support/stack/child_process.h"
#include "tests/support/stack/temp_dir.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace vgpu::test {
namespace {

constexpr std::size_t kConfigBytes = 4096;
/// umockdev's library comes before ASan's; sdbus-c++ 1.2 leaks the bus that it cannot open.
const std::vector<std::string> kOptions{"ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"};
using ConfigSpace = std::array<unsigned char, kConfigBytes>;

/// Configuration spaces by address, of a dump in the format of lspci -xxxx.
std::map<std::string, ConfigSpace> functions_of(const std::string& dump) {
    std::map<std::string, ConfigSpace> functions;
    std::ifstream file(dump);
    ConfigSpace* current = nullptr;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string first;
        if (!(words >> first)) continue;
        if (first.back() != ':') {
            current = &functions[first];
            continue;
        }
        std::size_t at = std::stoul(first, nullptr, 16);
        for (std::string byte; words >> byte;)
            current->at(at++) = static_cast<unsigned char>(std::stoul(byte, nullptr, 16));
    }
    return functions;
}

/// The description of these functions in umockdev's format.
std::string tree_of(const std::map<std::string, ConfigSpace>& functions) {
    std::string text;
    for (const auto& [address, config] : functions) {
        const auto word = [&config = config](std::size_t at) {
            return config[at] | config[at + 1] << 8;
        };
        text += fmt::format("P: /devices/pci0000:00/{}\nE: SUBSYSTEM=pci\n", address);
        text += fmt::format("A: vendor=0x{:04x}\\n\nA: device=0x{:04x}\\n\n", word(0), word(2));
        text += fmt::format("A: class=0x{:04x}00\\n\nA: irq=0\\n\n", word(10));
        std::string resources;
        constexpr int kResources = 7;
        for (int i = 0; i < kResources; ++i)
            resources += fmt::format("0x{0:016x} 0x{0:016x} 0x{0:016x}\\n", 0);
        text += "A: resource=" + resources + "\nH: config=";
        for (const unsigned char byte : config) text += fmt::format("{:02X}", byte);
        text += "\n\n";
    }
    return text;
}

/// Findings about PCI, without those about IOMMU groups: a dump has none.
std::vector<std::string> pci_findings(const Completed& doctor) {
    std::vector<std::string> found;
    const auto report = nlohmann::json::parse(doctor.out, nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << doctor.out;
    if (report.is_discarded()) return found;
    for (const auto& finding : report.at("findings")) {
        const std::string id = finding.at("id");
        if (id.starts_with("pci") && id != "pci-group") found.push_back(finding.dump());
    }
    return found;
}

class DoctorTree : public ::testing::TestWithParam<const char*> {};

TEST_P(DoctorTree, FindsInSysfsWhatItFindsInADump) {
    const std::string dump = fmt::format("{}/tests/unit/cli/pci/{}", VGPU_SOURCE_DIR, GetParam());
    const TempDir directory;
    std::ofstream(directory.file("pci.umockdev")) << tree_of(functions_of(dump));
    const std::string no_bus = "unix:path=" + directory.file("none");
    const auto from_tree = run({"/usr/bin/umockdev-run", "--device", directory.file("pci.umockdev"),
                                "--", program("vgpuctl"), "--bus", no_bus, "doctor", "--json"},
                               kOptions);
    const auto from_dump = run(
        {program("vgpuctl"), "--bus", no_bus, "doctor", "--json", "--pci-dump", dump}, kOptions);
    const auto found = pci_findings(from_tree);
    EXPECT_THAT(found, ::testing::Not(::testing::IsEmpty())) << from_tree.out;
    EXPECT_EQ(found, pci_findings(from_dump));
}

INSTANTIATE_TEST_SUITE_P(Machines, DoctorTree,
                         ::testing::Values("sriov_ready.txt", "sriov_unready.txt", "no_sriov.txt"));

}  // namespace
}  // namespace vgpu::test
