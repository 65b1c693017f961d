// SPDX-License-Identifier: MIT
//
// The image that keeps a domain with a VF from being saved or migrated: QEMU refuses both while a
// disk of VirtualBox' format is open, and says the node's name (block/vdi.c of QEMU). No guest has
// it as a disk; `vgpuctl attach-xml` puts it on QEMU's command line.
#pragma once

#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

/// An empty disk of one block, as bytes: header and block map, 1 KiB.
[[nodiscard]] std::string never_saved_image();
/// Writes it, readable for all: whatever user QEMU runs as.
Result<> write_never_saved(const std::string& path);

}  // namespace vgpu::daemon::adapters
