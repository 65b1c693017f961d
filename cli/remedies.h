// SPDX-License-Identifier: MIT
//
// The commands that vgpuctl recommends for a VF that is not well. Each works in the state that it
// is recommended for, as it is printed: a test brings every state about, types the command and
// looks at the VF afterwards. Pure functions of the VF's properties; doctor prints them.
#pragma once

#include "cli/service.h"

#include <string>

namespace vgpu::cli {

/// Puts a VF that is out of service by its state back; "" for a state that needs no command.
std::string way_back(const Properties& vf);
/// Gives the definition of a VF up that could not be made as it is defined.
std::string giving_up(const Properties& vf);
/// Ends the claim in force and empties the VF for the next owner.
std::string ending_claim(const Properties& vf);

/// `word` as a shell takes it for one word and nothing else.
/// Owners and domains choose their names, which may hold "$(…)" and quotes.
std::string shell_word(const std::string& word);

}  // namespace vgpu::cli
