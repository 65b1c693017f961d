// SPDX-License-Identifier: MIT
//
// A disk image that keeps QEMU from saving or migrating a domain with a VF, because the VF's state
// would be lost. While a VDI image is open, QEMU refuses to save or migrate the domain, and its
// error names the block node of the image (block/vdi.c of QEMU). Guests do not see the disk;
// `vgpuctl attach-xml` adds the disk to QEMU's command line.
#pragma once

#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

/// The content of the image, 1 KiB: header and block map of an empty disk of one block.
[[nodiscard]] std::string migration_blocker_image();
/// Writes the image to a new file at `path`, readable by all users, because QEMU may run as any
/// user. System if the file exists already or cannot be written.
Result<> write_migration_blocker(const std::string& path);

}  // namespace vgpu::daemon::adapters
