// SPDX-License-Identifier: MIT
#include "daemon/adapters/migration_blocker.h"

#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vgpu::daemon::adapters {

namespace {

constexpr std::uint32_t kSectorBytes = 512;
constexpr std::uint32_t kBlockBytes = 1u << 20;
constexpr std::uint32_t kNoBlock = 0xffffffff;  // entry of VDI's block map: not allocated

/// Header of a VDI image, version 1.1, little endian (VDICore.h of VirtualBox).
struct [[gnu::packed]] VdiHeader {
    char text[64];
    std::uint32_t signature = 0xbeda107f;
    std::uint32_t version = 0x00010001;
    std::uint32_t header_bytes = 0x180;
    std::uint32_t type = 1;  ///< dynamic: blocks are allocated when written
    std::uint32_t flags = 0;
    char description[256] = {};
    std::uint32_t map_offset = kSectorBytes;
    std::uint32_t data_offset = 2 * kSectorBytes;
    std::uint32_t cylinders = 0, heads = 0, sectors = 0;
    std::uint32_t sector_bytes = kSectorBytes;
    std::uint32_t unused = 0;
    std::uint64_t disk_bytes = kBlockBytes;
    std::uint32_t block_bytes = kBlockBytes;
    std::uint32_t block_extra_bytes = 0;
    std::uint32_t blocks = 1;
    std::uint32_t allocated_blocks = 0;
    char uuids[4][16] = {};  ///< UUIDs of the image, its last snapshot, its base, its parent
    char padding[56] = {};
};
static_assert(sizeof(VdiHeader) == kSectorBytes);

}  // namespace

std::string migration_blocker_image() {
    constexpr std::string_view kWords =
        "a domain with a VF of vgpu can be neither saved nor migrated\n";
    VdiHeader header{};
    kWords.copy(header.text, sizeof header.text);
    std::string image(2 * kSectorBytes, '\0');
    std::memcpy(image.data(), &header, sizeof header);
    std::memcpy(image.data() + kSectorBytes, &kNoBlock, sizeof kNoBlock);
    return image;
}

Result<> write_migration_blocker(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const std::string image = migration_blocker_image();
    // umask may have cleared some bits of the mode
    if (fd.get() >= 0 && ::fchmod(fd.get(), 0644) == 0 &&
        ::write(fd.get(), image.data(), image.size()) == static_cast<ssize_t>(image.size()))
        return {};
    return fail_errno(ErrorId::System, errno, "cannot write " + path);
}

}  // namespace vgpu::daemon::adapters
