// SPDX-License-Identifier: MIT
//
// run_cli runs one command line, from its words to the exit code. It connects to vgpud only when a
// verb needs it, through a function that the caller passes, so that tests can pass their own.
// Called by main.cpp and by tests.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Documents about vgpuctl besides --help; see make_document().
enum class Document { BashCompletion, ZshCompletion, ManualPage };

/// Called when a verb needs vgpud, with the value of --bus ("system", "session" or an address).
/// Throws ServiceError if there is no such bus.
using Connect = std::function<std::unique_ptr<Service>(const std::string& bus)>;

/// Output streams of a command line. Only results go to `out`, so that it can be piped; complaints
/// and notes go to `err`. Both must outlive the call.
struct Streams {
    std::ostream& out;
    std::ostream& err;
    /// True if `out` is a terminal: verbs may draw progress and clear the screen.
    bool is_terminal = false;
    bool uses_colour = false;        ///< for `out`; colour.h decides
    std::size_t columns = kColumns;  ///< of the terminal, for progress; kColumns at most
};

/// Generates a completion script or the manual page from vgpuctl's table of verbs and options, so
/// that it cannot be out of date.
std::string make_document(Document document);

/// The error text if `words` are wrong usage; "" if vgpuctl would run them or show help.
std::string wrong_usage(std::vector<std::string> words);

/// `words` are the arguments without the program's name.
/// Returns the exit status, one of ExitCode. Usage, before it connects, for an unknown verb or
/// option, an empty word before "--", a word that is not UTF-8, and anything that CLI11 refuses.
/// Else the verb's result, or that of the ServiceError that it throws. An error has a text on `err`
/// and, with --json, a document on `out`. --help ends with 0. Failed instead of 0, with a text on
/// `err`, if `out` could not be written; not if its reader has gone.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams);

}  // namespace vgpu::cli
