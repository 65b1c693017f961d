// SPDX-License-Identifier: MIT
//
// TempDir: a private directory with a short path (socket addresses are limited), removed with its
// content. VGPU_TEST_KEEP=1 keeps it and prints where it is.
#pragma once

#include <filesystem>
#include <string>

namespace vgpu::test {

class TempDir {
public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

}  // namespace vgpu::test
