// SPDX-License-Identifier: MIT
//
// Writes .tar.gz files and reads compressed files, through libarchive. Entries have no user, group,
// host or time. Failed writes throw ServiceError with the file's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli {

/// Name in the archive ('/' between directories, not first) and content, as bytes.
using ArchiveEntry = std::pair<std::string, std::string>;

/// Writes `entries` below `top` into a new file (never an existing one) that only its owner can
/// read. ServiceError (exit status 1) with path and reason; removes an incomplete file.
void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries);

/// The entries of an archive by write_archive(), with `top` in names; empty for other files.
[[nodiscard]] std::vector<ArchiveEntry> read_archive(const std::string& path);

/// As gzip -d; none if unreadable or not compressed. Cut at 256 MiB.
[[nodiscard]] std::optional<std::string> read_compressed(const std::string& path);

}  // namespace vgpu::cli
