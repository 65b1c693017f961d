// SPDX-License-Identifier: MIT
#include "cli/vf_function.h"

#include "cli/domain_edit.h"
#include "cli/format.h"

#include <fmt/format.h>
#include <filesystem>
#include <system_error>

namespace vgpu::cli {

const Properties* kernel_gpu_of(const Properties& vf, const std::vector<Properties>& gpus) {
    const std::string target = text_of(vf, "Target");
    for (const Properties& gpu : gpus)
        if (target.starts_with(text_of(gpu, "Id") + "/") && text_of(gpu, "Platform") == "kernel")
            return &gpu;
    return nullptr;
}

/// The PF's links count from virtfn0, the VFs of vgpud from 1.
std::string function_of(const Properties& vf, const std::vector<Properties>& gpus,
                        const std::string& sysfs) {
    namespace fs = std::filesystem;
    const std::string address = text_of(vf, "Address");
    if (parse_pci_address(address)) return address;
    const Properties* gpu = kernel_gpu_of(vf, gpus);
    if (gpu == nullptr) return "";
    const fs::path device = fs::path(sysfs) / fs::path(text_of(*gpu, "Uapi")).filename() / "device";
    std::error_code error;
    return fs::read_symlink(device / fmt::format("virtfn{}", number_of(vf, "Index") - 1), error)
        .filename()
        .string();
}

}  // namespace vgpu::cli
