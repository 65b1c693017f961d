// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/guest_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/deadline.h"

namespace vgpu::test {
namespace {

UniqueFd make_memfd(std::uint64_t bytes, Sealing sealing) {
    UniqueFd fd(::memfd_create("vf-client-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
        throw VfError(fmt::format("guest RAM: {}", std::strerror(errno)), errno);
    if (sealing == Sealing::Sealed &&
        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        throw VfError(fmt::format("guest RAM seal: {}", std::strerror(errno)), errno);
    return fd;
}

Mapping map_shared(int fd, std::uint64_t bytes) {
    void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED)
        throw VfError(fmt::format("guest RAM map: {}", std::strerror(errno)), errno);
    return {start, bytes};
}

}  // namespace

GuestMemory::GuestMemory(std::uint64_t bytes, Sealing sealing)
    : fd_(make_memfd(bytes, sealing)),
      map_(map_shared(fd_.get(), bytes)),
      pages_("guest RAM", kIova, kIova + bytes) {}

std::uint64_t GuestMemory::allocate(std::uint64_t bytes, std::uint64_t align) {
    const auto rounded = (bytes + 4095) & ~std::uint64_t{4095};
    const auto iova = pages_.allocate(rounded, align);
    std::ranges::fill(at(iova, rounded), std::byte{0});
    return iova;
}

std::span<std::byte> GuestMemory::at(std::uint64_t iova, std::uint64_t bytes) const {
    if (iova < kIova || bytes > size() || iova - kIova > size() - bytes)
        throw VfError(fmt::format("bus address {:#x}+{:#x} is no guest RAM", iova, bytes));
    return map_.bytes().subspan(iova - kIova, bytes);
}

bool GuestMemory::read_file(std::uint64_t iova, std::span<std::byte> out) const {
    if (iova < kIova) return false;
    const auto got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(iova - kIova));
    return got == static_cast<ssize_t>(out.size());
}

bool GuestMemory::write_file(std::uint64_t iova, std::span<const std::byte> data) const {
    struct stat now {};
    if (iova < kIova || ::fstat(fd_.get(), &now) != 0) return false;
    const auto at = static_cast<off_t>(iova - kIova);
    if (at + static_cast<off_t>(data.size()) > now.st_size) return false;
    return ::pwrite(fd_.get(), data.data(), data.size(), at) == static_cast<ssize_t>(data.size());
}

void GuestMemory::shrink_to(std::uint64_t bytes) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
        throw VfError(fmt::format("shrink of guest RAM: {}", std::strerror(errno)), errno);
}

}  // namespace vgpu::test
