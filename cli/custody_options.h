// SPDX-License-Identifier: MIT
//
// CustodyOptions are the options of 'create' and 'set' for a VF's custody: who gets its PCI
// function (--handover), and when its VRAM is scrubbed (--scrub). Values: docs/dbus-api.md.
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
    /// Adds the options that were given, under the names of the service.
    void put(Options& options) const;

private:
    std::optional<std::string> handover_, scrub_;
};

}  // namespace vgpu::cli
