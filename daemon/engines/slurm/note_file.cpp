// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/note_file.h"

#include "text/whole_file.h"

#include <filesystem>
#include <fstream>

namespace vgpu::slurm {

namespace fs = std::filesystem;

std::optional<std::string> NoteFile::load(std::chrono::minutes max_age) const {
    std::error_code error;
    const auto written = fs::last_write_time(path_, error);
    const auto age = fs::file_time_type::clock::now() - written;
    // a clock that went back makes a note from the future
    if (error || age > max_age || age < fs::file_time_type::duration::zero()) return {};
    auto note = text::whole_file(path_);
    return note ? std::optional(*std::move(note)) : std::nullopt;
}

void NoteFile::save(const std::string& note) {
    std::error_code ignored;
    fs::create_directories(fs::path(path_).parent_path(), ignored);
    const std::string next = path_ + ".new";
    if (!(std::ofstream(next, std::ios::trunc) << note << std::flush)) return forget();
    fs::rename(next, path_, ignored);
}

void NoteFile::forget() {
    std::error_code ignored;
    fs::remove(path_, ignored);
}

}  // namespace vgpu::slurm
