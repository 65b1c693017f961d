// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/published_file.h"

#include "text/whole_file.h"

#include <filesystem>
#include <fstream>

namespace vgpu::slurm {

namespace fs = std::filesystem;

std::optional<std::string> PublishedFile::load(std::chrono::minutes max_age) const {
    std::error_code error;
    const auto written = fs::last_write_time(path_, error);
    const auto age = fs::file_time_type::clock::now() - written;
    // if the clock was set back, the file may look newer than now; then its age is unknown
    if (error || age > max_age || age < fs::file_time_type::duration::zero()) return {};
    auto published = text::whole_file(path_);
    return published ? std::optional(*std::move(published)) : std::nullopt;
}

void PublishedFile::save(const std::string& published) {
    std::error_code ignored;
    fs::create_directories(fs::path(path_).parent_path(), ignored);
    const std::string next = path_ + ".new";
    if (!(std::ofstream(next, std::ios::trunc) << published << std::flush)) return forget();
    fs::rename(next, path_, ignored);
}

void PublishedFile::forget() {
    std::error_code ignored;
    fs::remove(path_, ignored);
}

}  // namespace vgpu::slurm
