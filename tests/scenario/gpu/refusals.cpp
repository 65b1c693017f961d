// SPDX-License-Identifier: MIT
//
// Fails every test in which the filter refused a system call that softgpu or vgpu-pf made itself.
#include <gtest/gtest.h>

#include "tests/support/stack/gpu_stack.h"

namespace vgpu::test {
namespace {

class Refusals : public ::testing::EmptyTestEventListener {
    void OnTestEnd(const ::testing::TestInfo&) override {
        for (const std::string& line : take_refusals()) ADD_FAILURE() << line;
    }
};

[[maybe_unused]] const bool is_listening = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Refusals);
    return true;
}();

}  // namespace
}  // namespace vgpu::test
