// SPDX-License-Identifier: MIT
//
// The commands that vgpuctl recommends for a VF in a bad state. Each works exactly as printed: a
// test creates every such state, runs the command and checks the VF afterwards. Pure functions of
// the VF's properties; doctor prints them.
#pragma once

#include "cli/service.h"

#include <string>

namespace vgpu::cli {

/// Puts a VF back that is out of service by its state; "" for a state that needs no command.
std::string way_back(const Properties& vf);
/// Gives up the definition of a VF that could not be made as defined.
std::string giving_up(const Properties& vf);
/// Ends the claim in force and empties the VF for the next owner.
std::string ending_claim(const Properties& vf);

/// `word` quoted so that a shell reads it as one literal word.
/// Owners and domains choose their names, which may contain "$(…)" and quotes.
std::string shell_word(const std::string& word);

}  // namespace vgpu::cli
