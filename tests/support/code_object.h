// SPDX-License-Identifier: MIT
//
// A loader for AMDGPU code objects (ELF64): the segments to be placed in GPU memory and the kernel
// descriptors found by name. Enough for tests that dispatch kernels without a ROCm runtime;
// relocations are not needed by the test kernels and are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pf-driver/softgpu/base/result.h"

namespace vgpu::test {

/// The 64-byte descriptor of a kernel, as far as a dispatch needs it.
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

    /// What memory holds from the load address on; the load address must be 4 KiB aligned.
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
