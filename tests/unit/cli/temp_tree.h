// SPDX-License-Identifier: MIT
//
// TempTree: a directory of the test in which files are laid out, removed with everything in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace vgpu::cli::testing {

class TempTree {
public:
    TempTree() {
        std::string pattern = std::filesystem::temp_directory_path() / "vgpu-cli-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~TempTree() { std::filesystem::remove_all(path_); }
    TempTree(const TempTree&) = delete;
    TempTree& operator=(const TempTree&) = delete;

    /// Writes a file and the directories above it; its path.
    std::string write(const std::string& name, const std::string& text) const {
        const std::filesystem::path file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return file;
    }
    void make_directory(const std::string& name) const {
        std::filesystem::create_directories(path_ / name);
    }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }
    [[nodiscard]] std::string path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace vgpu::cli::testing
