// SPDX-License-Identifier: MIT
//
// A .tar.gz in memory or on disk through libarchive, and the text of a compressed file. Entries
// carry no user, group, host or time of their own. Used by report and by the host collector (for
// /proc/config.gz); failures are ServiceError with the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Name within the archive, and content.
/// Both are bytes; the name has '/' between directories and none in front.
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` below the directory `top` into a new file at `path`, readable by its owner
/// only. A file that exists is not overwritten.
/// Throws ServiceError (System: exit status 1) with the path and the reason; a file that could not
/// be finished is removed again.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The content of a .tar.gz written by write_archive(), for tests and for those who look into one.
/// In their order, `top` included in the names; empty if it is no such file.
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// What gzip -d would print; nothing if it is not readable or not compressed.
/// At most 256 MiB: what is longer is cut, since the file may be anybody's.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
