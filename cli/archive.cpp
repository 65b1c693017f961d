// SPDX-License-Identifier: MIT
#include "cli/archive.h"

#include "cli/service.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace vgpu::cli {

namespace {

constexpr std::size_t kBlock = 64 * 1024;
/// Limit of the content of one file or entry; larger than any kernel configuration or report.
constexpr std::size_t kMaxBytes = 256u << 20;

struct FreeWriter {
    void operator()(archive* writer) const { ::archive_write_free(writer); }
};
struct FreeReader {
    void operator()(archive* reader) const { ::archive_read_free(reader); }
};
struct FreeEntry {
    void operator()(archive_entry* entry) const { ::archive_entry_free(entry); }
};
using Writer = std::unique_ptr<archive, FreeWriter>;
using Reader = std::unique_ptr<archive, FreeReader>;
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw ServiceError("org.vgpu1.Error.System", fmt::format("cannot write {}: {}", path, why));
}

std::string libarchive_error(archive* writer) {
    const char* words = ::archive_error_string(writer);
    return words != nullptr ? words : "libarchive gives no reason";
}

/// Adds one file. `path`: path of the archive, for the error. `name`: the file's path in the
/// archive.
void add_file(archive* writer, const std::string& path, const std::string& name,
              const std::string& content) {
    constexpr unsigned kMode = 0644;
    const Entry entry(::archive_entry_new());
    ::archive_entry_set_pathname(entry.get(), name.c_str());
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    ::archive_entry_set_filetype(entry.get(), AE_IFREG);
    ::archive_entry_set_perm(entry.get(), kMode);
    // no time in the entry, so that equal entries give equal bytes
    ::archive_entry_set_mtime(entry.get(), 0, 0);
    const bool is_written = ::archive_write_header(writer, entry.get()) == ARCHIVE_OK &&
                            ::archive_write_data(writer, content.data(), content.size()) ==
                                static_cast<la_ssize_t>(content.size());
    if (!is_written) fail(path, libarchive_error(writer));
}

/// The rest of the current entry, up to kMaxBytes or an error.
std::string content_of(archive* reader) {
    std::string content;
    std::string block(kBlock, '\0');
    while (content.size() < kMaxBytes) {
        const la_ssize_t got = ::archive_read_data(reader, block.data(), block.size());
        if (got <= 0) break;
        content.append(block, 0, static_cast<std::size_t>(got));
    }
    return content;
}

}  // namespace

void write_archive(const std::string& path, const std::string& top,
                   const std::vector<ArchiveEntry>& entries) {
    constexpr mode_t kOwnerOnly = 0600;
    // O_EXCL also refuses a symbolic link, through which another user could overwrite root's files
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly);
    if (fd < 0) fail(path, std::generic_category().message(errno));
    const Writer writer(::archive_write_new());
    ::archive_write_add_filter_gzip(writer.get());
    // no time in the gzip header
    ::archive_write_set_filter_option(writer.get(), "gzip", "timestamp", nullptr);
    ::archive_write_set_format_ustar(writer.get());
    try {
        if (::archive_write_open_fd(writer.get(), fd) != ARCHIVE_OK)
            fail(path, libarchive_error(writer.get()));
        for (const auto& [name, content] : entries)
            add_file(writer.get(), path, top + "/" + name, content);
        if (::archive_write_close(writer.get()) != ARCHIVE_OK)
            fail(path, libarchive_error(writer.get()));
    } catch (const ServiceError&) {
        ::close(fd);
        ::unlink(path.c_str());
        throw;
    }
    ::close(fd);
}

std::vector<ArchiveEntry> read_archive(const std::string& path) {
    const Reader reader(::archive_read_new());
    ::archive_read_support_filter_gzip(reader.get());
    ::archive_read_support_format_tar(reader.get());
    std::vector<ArchiveEntry> entries;
    if (::archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK)
        return entries;
    for (archive_entry* entry = nullptr;
         ::archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK;)
        entries.emplace_back(::archive_entry_pathname(entry), content_of(reader.get()));
    return entries;
}

std::optional<std::string> read_compressed(const std::string& path) {
    const Reader reader(::archive_read_new());
    ::archive_read_support_filter_gzip(reader.get());
    ::archive_read_support_format_raw(reader.get());
    archive_entry* entry = nullptr;
    if (::archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK ||
        ::archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK)
        return {};
    return content_of(reader.get());
}

}  // namespace vgpu::cli
