// SPDX-License-Identifier: MIT
//
// What an operator sees: lspci decodes the configuration spaces, and the result is compared with
// tests/golden/lspci. After an intended change: VGPU_UPDATE_GOLDEN=1 bin/unit_pci writes the files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/unit/pci/fake_owner.h"

namespace vgpu::softgpu::pci::test {
namespace {

constexpr std::string_view kGoldenVersion = "lspci version 3.9.0\n";  // of Debian 12

/// A configuration space in the format of lspci -xxxx, which lspci -F reads.
std::string dump(Rig& rig) {
    std::string text = "00:01.0 function\n";
    for (std::uint32_t line = 0; line < ConfigSpace::kBytes; line += 16) {
        text += fmt::format("{:02x}:", line);
        for (std::uint32_t i = 0; i < 16; i++)
            text += fmt::format(" {:02x}", rig.config<std::uint8_t>(line + i));
        text += '\n';
    }
    return text;
}

std::string output_of(const std::string& command) {
    std::string text;
    std::array<char, 4096> buffer{};
    const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
    const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
    while (pipe && std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr)
        text += buffer.data();
    return text;
}

/// The command lspci is started with; empty if this machine has none.
std::string lspci() {
    for (const char* path : {"/usr/bin/lspci", "/sbin/lspci", "/usr/sbin/lspci", "/bin/lspci"})
        if (::access(path, X_OK) == 0) return path;
    return {};
}

/// As a kernel leaves it: BARs assigned, decoding on.
void assign_bars(Rig& rig) {
    rig.set_config(PCI_BASE_ADDRESS_0, 0xc0000000u);
    rig.set_config(PCI_BASE_ADDRESS_2, 0xc8000000u);
    rig.set_config(PCI_BASE_ADDRESS_5, 0xfe000000u);
}

void expect_golden(Rig& rig, const std::string& name) {
    const std::string program = lspci();
    if (program.empty()) GTEST_SKIP() << "lspci is not installed (Debian package pciutils)";
    const std::string version = output_of(program + " --version");
    if (version != kGoldenVersion)
        GTEST_SKIP() << "the golden files are of " << kGoldenVersion << ", this is " << version;
    std::string file = (std::filesystem::temp_directory_path() / "vgpu-lspci-XXXXXX").string();
    ASSERT_GE(OwnedFd(::mkstemp(file.data())).get(), 0);
    std::ofstream(file) << dump(rig);
    const std::string seen = output_of(fmt::format("{} -n -vvv -F {}", program, file));
    std::filesystem::remove(file);
    const std::string golden = fmt::format("{}/{}.txt", VGPU_LSPCI_GOLDEN, name);
    if (std::getenv("VGPU_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << seen;
    std::stringstream expected;
    expected << std::ifstream(golden).rdbuf();
    EXPECT_EQ(seen, expected.str());
}

TEST(PciLspci, ShowsTheVf) {
    Rig rig = Rig::vf();
    assign_bars(rig);
    rig.set_config(VGPU_CAP_MSI + PCI_MSI_FLAGS, std::uint16_t{PCI_MSI_FLAGS_ENABLE});
    rig.set_config(VGPU_CAP_MSI + PCI_MSI_ADDRESS_LO, 0xfee01000u);
    rig.set_config(VGPU_CAP_MSI + PCI_MSI_DATA_64, std::uint16_t{0x4021});
    expect_golden(rig, "vf");
}

TEST(PciLspci, ShowsThePf) {
    Rig rig = Rig::pf();
    assign_bars(rig);
    rig.set_config(VGPU_CAP_MSIX + PCI_MSIX_FLAGS, std::uint16_t{PCI_MSIX_FLAGS_ENABLE});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, std::uint16_t{4});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL,
                   std::uint16_t{PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE | PCI_SRIOV_CTRL_ARI});
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_BAR, 0xd0000000u);
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 8, 0xe0000000u);
    rig.set_config(VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 20, 0xfd000000u);
    expect_golden(rig, "pf");
}

}  // namespace
}  // namespace vgpu::softgpu::pci::test
