// SPDX-License-Identifier: MIT
//
// The disk image that keeps QEMU from saving or migrating a domain with a VF, because the VF's
// state would be lost. QEMU refuses both while an image in VirtualBox' format is open, and names
// the node (block/vdi.c of QEMU). No guest sees it as a disk; `vgpuctl attach-xml` puts it on
// QEMU's command line.
#pragma once

#include "daemon/ports/result.h"

#include <string>

namespace vgpu::daemon::adapters {

/// An empty disk of one block, as bytes: header and block map, 1 KiB.
[[nodiscard]] std::string never_saved_image();
/// Writes the image, readable by all, since QEMU may run as any user.
Result<> write_never_saved(const std::string& path);

}  // namespace vgpu::daemon::adapters
