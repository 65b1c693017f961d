// SPDX-License-Identifier: MIT
//
// Where vgpud keeps what must survive it: one document, replaced as a whole. After store() returned
// success the document is on disk even if the power fails; after a failure the old one is still
// there. Implemented by adapters/file_state; tests implement it in memory and with failures.
#pragma once

#include "daemon/ports/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

class StatePort {
public:
    virtual ~StatePort() = default;

    /// The document, or nothing if none was ever stored.
    virtual Result<std::optional<std::string>> load() = 0;
    virtual Result<> store(std::string_view document) = 0;
    /// For messages: where the document is.
    [[nodiscard]] virtual std::string where() const = 0;
};

}  // namespace vgpu::daemon
