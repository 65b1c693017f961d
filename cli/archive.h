// SPDX-License-Identifier: MIT
//
// Writes .tar.gz files and reads compressed files, through libarchive. Archives store no user name,
// group name or time, so equal entries give equal bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// The name of an entry (a relative path) and its content (any bytes).
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` into a new file that only its owner can read. In the archive, an entry has the
/// name `top`/NAME. Throws ServiceError (exit status 1) with path and reason if `path` exists or
/// the write fails. After a failed write, removes the incomplete file.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The entries of a tar file, which may be compressed with gzip; empty for other files. The names
/// are those in the archive, so they include the `top` of write_archive().
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// The content of a file, decompressed if the file is a gzip file, and cut at 256 MiB. None if the
/// file is empty or unreadable.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
