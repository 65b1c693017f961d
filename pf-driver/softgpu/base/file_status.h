// SPDX-License-Identifier: MIT
//
// file_status(): what the kernel knows about an open file, for the blocks that check descriptors of
// clients. libc's fstat() calls newfstatat() with an empty path, so the filter of a process that is
// locked in (pf-driver/confine) would have to allow newfstatat() of every path.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vgpu::softgpu {

/// False, with errno, if `fd` is not open.
inline bool file_status(int fd, struct stat& status) {
    return ::syscall(SYS_fstat, fd, &status) == 0;
}

}  // namespace vgpu::softgpu
