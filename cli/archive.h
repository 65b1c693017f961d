// SPDX-License-Identifier: MIT
//
// Writes and reads .tar.gz files through libarchive, and reads a compressed file. Entries carry no
// user, group, host or time. Used by report and by the host collector (for /proc/config.gz);
// a failed write throws ServiceError with the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Name within the archive, and content.
/// Both are bytes; the name has '/' between directories but not at its start.
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` below the directory `top` into a new file at `path`, readable only by its
/// owner. Does not overwrite an existing file.
/// Throws ServiceError (System: exit status 1) with the path and the reason; removes a file that it
/// could not finish.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The entries of a .tar.gz written by write_archive(), in their order; for tests.
/// Names include `top`; empty if the file is not such an archive.
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// The content, as from gzip -d; empty if the file is not readable or not compressed.
/// Cut at 256 MiB, because the file may come from anybody.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
