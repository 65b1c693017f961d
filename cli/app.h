// SPDX-License-Identifier: MIT
//
// run_cli: one command line from words to exit code. The service is made only when a verb needs it,
// by the function given, so that tests put their own in. Called by main.cpp and by tests.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

/// What vgpuctl can say of itself besides --help; see make_document().
enum class Document { BashCompletion, ZshCompletion, ManualPage };

/// Called when a verb needs vgpud, with the value of --bus ("system", "session" or an address).
/// Throws ServiceError if there is no such bus.
using Connect = std::function<std::unique_ptr<Service>(const std::string& bus)>;

/// Where a command line speaks. Output proper goes to `out` and nothing else does, so that it can
/// be piped; complaints and notes go to `err`. Both outlive the call.
struct Streams {
    std::ostream& out;
    std::ostream& err;
    /// `out` is one: verbs may draw progress and clear the screen.
    bool is_terminal = false;
    bool uses_colour = false;        ///< for `out`; colour.h decides
    std::size_t columns = kColumns;  ///< of the terminal, for progress; kColumns at most
};

/// The documents about vgpuctl that are made from its own table of verbs and options, so that they
/// cannot be out of date: the scripts for completion, the manual page.
std::string make_document(Document document);

/// What vgpuctl says of `words` if they are wrong usage; "" if it would run them or show help.
std::string wrong_usage(std::vector<std::string> words);

/// `words` are the arguments without the program's name.
/// Returns the exit status, one of ExitCode. Usage, before anybody is connected, for an unknown
/// verb or option, an empty word before "--", one that is no UTF-8, and for what CLI11 refuses;
/// else what the verb returns, or the exit code of the ServiceError that it throws, whose words are
/// then on `err`.
/// --help ends with 0. Failed in place of 0, with words on `err`, if `out` could not be written;
/// not if its reader has gone.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams);

}  // namespace vgpu::cli
