// SPDX-License-Identifier: MIT
//
// file_status(): calls the system call fstat directly, for code that checks descriptors of clients.
// glibc's fstat() uses newfstatat() with an empty path instead. The seccomp filter of softgpu
// (pf-driver/confine) cannot read paths: to allow that call, the filter would have to allow
// newfstatat() for every path.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vgpu::softgpu {

/// Fills `status`. False, with errno set, on a failure, for example if `fd` is not open.
inline bool file_status(int fd, struct stat& status) {
    return ::syscall(SYS_fstat, fd, &status) == 0;
}

}  // namespace vgpu::softgpu
