// SPDX-License-Identifier: MIT
//
// CodeObject: loads an AMDGPU code object (ELF64), builds its image for GPU memory and finds kernel
// descriptors by name. Tests dispatch kernels with it, without a ROCm runtime. It refuses
// relocations, which the test kernels do not need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pf-driver/softgpu/base/result.h"

namespace vgpu::test {

/// The members of a kernel's 64-byte descriptor that a dispatch needs.
struct KernelDescriptor {
    std::uint64_t offset = 0;  ///< of the descriptor, from the start of the image
    std::uint32_t group_bytes = 0;
    std::uint32_t private_bytes = 0;
    std::uint32_t kernarg_bytes = 0;
    std::uint64_t entry_offset = 0;  ///< of the first instruction, from the start of the image
    std::uint32_t pgm_rsrc1 = 0;
    std::uint32_t pgm_rsrc2 = 0;
    std::uint16_t properties = 0;
};

class CodeObject {
public:
    [[nodiscard]] static Result<CodeObject> parse(std::span<const std::byte> elf);
    [[nodiscard]] static Result<CodeObject> open(const std::string& path);

    /// The bytes to copy to the load address, which must be 4 KiB aligned.
    [[nodiscard]] std::span<const std::byte> image() const { return image_; }
    [[nodiscard]] Result<KernelDescriptor> kernel(std::string_view name) const;

private:
    struct Symbol {
        std::string name;
        std::uint64_t offset;
    };
    std::vector<std::byte> image_;
    std::vector<Symbol> symbols_;
};

}  // namespace vgpu::test
