// SPDX-License-Identifier: MIT
//
// Commands that vgpuctl recommends for a VF in a bad state. A test creates each state, runs the
// command as printed and checks the VF. Pure functions.
#pragma once

#include "cli/service.h"

#include <string>

namespace vgpu::cli {

/// The command for a VF out of service; "" if none is needed.
std::string recovery_command(const Properties& vf);
/// The command for a VF that could not be made as defined.
std::string drop_command(const Properties& vf);
/// The command that ends the claim and scrubs the VF.
std::string end_claim_command(const Properties& vf);

/// Quotes a word for a shell, because names of owners and domains may contain "$(…)" and quotes.
std::string shell_word(const std::string& word);

}  // namespace vgpu::cli
