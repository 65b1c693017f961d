// SPDX-License-Identifier: MIT
//
// file_status(): fstat() by the system call of that name, for the blocks that check descriptors of
// clients. libc's fstat() calls newfstatat() with an empty path, so the filter of a process that is
// confined (pf-driver/confine) would have to allow newfstatat() of every path.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vgpu::softgpu {

/// Fills `status`. False, with errno set, if `fd` is not open.
inline bool file_status(int fd, struct stat& status) {
    return ::syscall(SYS_fstat, fd, &status) == 0;
}

}  // namespace vgpu::softgpu
