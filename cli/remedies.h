// SPDX-License-Identifier: MIT
//
// Commands that vgpuctl recommends for a VF in a bad state. A test creates each of these states,
// runs the recommended command as printed, and checks the VF. Pure functions.
#pragma once

#include "cli/service.h"

#include <string>

namespace vgpu::cli {

/// The command that ends the state "quarantined" or "mismatch" of a VF; "" for other states.
std::string recovery_command(const Properties& vf);
/// The command that drops the definition of a VF, for a VF that differs from its definition.
std::string drop_command(const Properties& vf);
/// The command that ends the claim of a VF and scrubs the VF.
std::string end_claim_command(const Properties& vf);

/// The word for a shell: quoted if it has special characters, because names of domains may contain
/// "$(…)" and quotes.
std::string shell_word(const std::string& word);

}  // namespace vgpu::cli
