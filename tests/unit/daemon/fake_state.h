// SPDX-License-Identifier: MIT
//
// FakeState: a disk in memory at the StatePort seam; can be full.
#pragma once

#include "daemon/ports/state_port.h"

namespace vgpu::daemon::testing {

class FakeState final : public StatePort {
public:
    Result<std::optional<std::string>> load() override { return document; }
    Result<> store(std::string_view text) override {
        if (is_full) return fail(ErrorId::StateNotWritten, "no space left");
        document = std::string(text);
        ++stores;
        return {};
    }
    [[nodiscard]] std::string where() const override { return "memory"; }

    std::optional<std::string> document;
    bool is_full = false;
    int stores = 0;
};

}  // namespace vgpu::daemon::testing
