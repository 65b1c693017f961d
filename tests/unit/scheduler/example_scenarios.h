// SPDX-License-Identifier: MIT
//
// The scenarios of schemas/examples and other files of the tree, for the tests that go through all
// of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace vgpu::simulator {

inline const std::filesystem::path kRoot = VGPU_SOURCE_DIR;

inline std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// In the order of their names.
inline std::vector<std::filesystem::path> example_scenarios(const std::string& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(kRoot / "schemas/examples" / folder))
        if (entry.path().filename().string().starts_with("vgpu-scenario"))
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace vgpu::simulator
