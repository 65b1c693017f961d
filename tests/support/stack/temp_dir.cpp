// SPDX-License-Identifier: MIT
#include "tests/support/stack/temp_dir.h"

#include <cstdlib>
#include <iostream>
#include <system_error>

#include "tests/support/deadline.h"

namespace vgpu::test {

TempDir::TempDir() {
    auto pattern = (std::filesystem::temp_directory_path() / "vgpu-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw VfError("cannot make " + pattern, errno);
    path_ = pattern;
}

TempDir::~TempDir() {
    if (std::getenv("VGPU_TEST_KEEP") != nullptr) {
        std::cerr << "kept: " << path_.string() << '\n';
        return;
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace vgpu::test
