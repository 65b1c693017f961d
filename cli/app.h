// SPDX-License-Identifier: MIT
//
// run_cli: one command line from words to exit code. The service is made only when a verb needs it,
// by the function given, so that tests put their own in. Called by main.cpp and by tests.
#pragma once

#include "cli/service.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

enum class Document { BashCompletion, ZshCompletion, ManualPage };

using Connect = std::function<std::unique_ptr<Service>(const std::string& bus)>;

struct Streams {
    std::ostream& out;
    std::ostream& err;
    bool is_terminal = false;
    bool uses_colour = false;  ///< for `out`; colour.h decides
};

/// The documents about vgpuctl that are made from its own table of verbs and options, so that they
/// cannot be out of date: the scripts for completion, the manual page.
std::string make_document(Document document);

/// `words` are the arguments without the program's name.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams);

}  // namespace vgpu::cli
