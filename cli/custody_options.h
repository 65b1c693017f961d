// SPDX-License-Identifier: MIT
//
// CustodyOptions: into whose hands a VF comes, on the command line of 'create' and 'set': who gets
// its function, and when its VRAM is emptied. What the words mean is in docs/dbus-api.md.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace vgpu::cli {

class CustodyOptions {
public:
    /// Adds --handover and --scrub.
    void describe(CLI::App& command);
    /// What was given, under the names the service takes.
    void put(Options& options) const;

private:
    std::optional<std::string> handover_, scrub_;
};

}  // namespace vgpu::cli
