// SPDX-License-Identifier: MIT
#include "tests/support/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {

namespace {

using softgpu::load;

constexpr std::uint64_t kMaxImage = 64u << 20;
constexpr std::size_t kDescriptorBytes = 64;

/// `count` objects of type T at `offset` are inside `bytes`.
template <typename T>
bool holds(std::span<const std::byte> bytes, std::uint64_t offset, std::uint64_t count = 1) {
    return offset <= bytes.size() && count <= (bytes.size() - offset) / sizeof(T);
}

Result<Elf64_Ehdr> header_of(std::span<const std::byte> elf) {
    constexpr std::uint16_t amdgpu_machine = 224;
    if (!holds<Elf64_Ehdr>(elf, 0)) return fail(EINVAL, "code object is shorter than its header");
    const auto header = load<Elf64_Ehdr>(elf);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != amdgpu_machine)
        return fail(EINVAL, "not an AMDGPU code object");
    if (!holds<Elf64_Phdr>(elf, header.e_phoff, header.e_phnum) ||
        !holds<Elf64_Shdr>(elf, header.e_shoff, header.e_shnum))
        return fail(EINVAL, "code object tables lie outside the file");
    return header;
}

Result<> place_segment(std::span<const std::byte> elf, const Elf64_Phdr& segment,
                       std::vector<std::byte>& image) {
    if (segment.p_type != PT_LOAD) return {};
    const std::uint64_t end = segment.p_vaddr + segment.p_memsz;
    const bool is_sane = segment.p_filesz <= segment.p_memsz && end >= segment.p_vaddr &&
                         end <= kMaxImage &&
                         holds<std::byte>(elf, segment.p_offset, segment.p_filesz);
    if (!is_sane) return fail(EINVAL, "code object has an impossible segment");
    if (image.size() < end) image.resize(end);
    std::ranges::copy(elf.subspan(segment.p_offset, segment.p_filesz),
                      image.begin() + static_cast<std::ptrdiff_t>(segment.p_vaddr));
    return {};
}

std::string string_at(std::span<const std::byte> bytes) {
    std::string out;
    for (const std::byte c : bytes) {
        if (c == std::byte{0}) break;
        out.push_back(static_cast<char>(c));
    }
    return out;
}

}  // namespace

Result<CodeObject> CodeObject::parse(std::span<const std::byte> elf) {
    TRY(const Elf64_Ehdr header, header_of(elf));
    CodeObject object;
    for (std::uint16_t i = 0; i < header.e_phnum; ++i)
        TRY_VOID(place_segment(elf, load<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr)),
                               object.image_));
    const auto section = [&](std::uint32_t i) {
        return load<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    };
    for (std::uint16_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr table = section(i);
        if (table.sh_type == SHT_RELA || table.sh_type == SHT_REL)
            return fail(ENOTSUP, "code object has relocations, which this loader does not apply");
        if (table.sh_type != SHT_DYNSYM) continue;
        if (table.sh_link >= header.e_shnum) return fail(EINVAL, "symbol table without strings");
        const Elf64_Shdr strings = section(table.sh_link);
        const std::uint64_t count = table.sh_size / sizeof(Elf64_Sym);
        if (!holds<Elf64_Sym>(elf, table.sh_offset, count) ||
            !holds<std::byte>(elf, strings.sh_offset, strings.sh_size))
            return fail(EINVAL, "symbol table lies outside the file");
        for (std::uint64_t k = 0; k < count; ++k) {
            const auto symbol = load<Elf64_Sym>(elf, table.sh_offset + k * sizeof(Elf64_Sym));
            if (symbol.st_name >= strings.sh_size) continue;
            const auto name =
                elf.subspan(strings.sh_offset + symbol.st_name, strings.sh_size - symbol.st_name);
            object.symbols_.push_back({string_at(name), symbol.st_value});
        }
    }
    return object;
}

Result<CodeObject> CodeObject::open(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail_errno(ENOENT, "cannot open code object " + path);
    const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
    return parse(std::as_bytes(std::span(content)));
}

Result<KernelDescriptor> CodeObject::kernel(std::string_view name) const {
    const std::string wanted = std::string(name) + ".kd";
    const auto found = std::ranges::find(symbols_, wanted, &Symbol::name);
    if (found == symbols_.end()) return fail(ENOENT, "no kernel named " + std::string(name));
    if (!holds<std::byte>(image_, found->offset, kDescriptorBytes))
        return fail(EINVAL, "kernel descriptor lies outside the image");
    const std::span<const std::byte> raw =
        std::span(image_).subspan(found->offset, kDescriptorBytes);
    KernelDescriptor out;
    out.offset = found->offset;
    out.group_bytes = load<std::uint32_t>(raw, 0);
    out.private_bytes = load<std::uint32_t>(raw, 4);
    out.kernarg_bytes = load<std::uint32_t>(raw, 8);
    out.entry_offset = found->offset + load<std::uint64_t>(raw, 16);
    out.pgm_rsrc1 = load<std::uint32_t>(raw, 48);
    out.pgm_rsrc2 = load<std::uint32_t>(raw, 52);
    out.properties = load<std::uint16_t>(raw, 56);
    return out;
}

}  // namespace vgpu::test
