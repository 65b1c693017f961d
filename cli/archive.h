// SPDX-License-Identifier: MIT
//
// Writes .tar.gz files and reads compressed files, through libarchive. Entries have no user, group,
// host or time. A failed write throws ServiceError with the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Name in the archive ('/' between directories, not at the beginning) and content, as bytes.
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` below `top` into a new file that only its owner can read; never overwrites a
/// file. ServiceError (exit status 1) with path and reason; an incomplete file is removed.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The entries of a tar file, with gzip or uncompressed (those of write_archive() have `top` in
/// their names); empty for other files.
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// The content, as gzip -dcf writes it, cut at 256 MiB: a file that is not compressed is returned
/// as it is. None if the file is empty or unreadable.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
