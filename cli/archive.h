// SPDX-License-Identifier: MIT
//
// Writes .tar.gz files and reads compressed files, through libarchive. Entries have no names of
// users or groups and no time. A failed write throws ServiceError with the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// The entry's name, a relative path, and its content, as bytes.
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` into a new file that only its owner can read. In the archive, the names begin
/// with `top` and '/'. Throws ServiceError (exit status 1) with path and reason if `path` exists or
/// the write fails; in the second case, removes the incomplete file.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The entries of a tar file, which may be compressed with gzip; empty for other files. In a file
/// that write_archive() made, the names of entries begin with `top` and '/'.
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// The content of a file, cut at 256 MiB. Decompresses a file that gzip has compressed. None if the
/// file is empty or unreadable.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
