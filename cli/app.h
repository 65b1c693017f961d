// SPDX-License-Identifier: MIT
//
// run_cli(): runs one command line. Connects to vgpud only when a verb needs it, through a function
// that tests can replace. Called by main.cpp and tests.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

enum class Document { BashCompletion, ZshCompletion, ManualPage };

/// `bus`: value of --bus. Throws ServiceError if there is no such bus.
using Connect = std::function<std::unique_ptr<Service>(const std::string& bus)>;

/// Only results are written to `out`, so that it can be piped. Both streams must outlive the call.
struct Streams {
    std::ostream& out;
    std::ostream& err;
    /// `out` is a terminal: verbs may draw progress and clear the screen.
    bool is_terminal = false;
    bool uses_colour = false;        ///< for `out`; wants_colour() decides
    std::size_t columns = kColumns;  ///< width for progress: the terminal's, at most kColumns
};

/// Makes a document from the table of verbs and options, so that it cannot be out of date.
std::string make_document(Document document);

/// The error text for wrong usage; "" if `words` would run a verb or show help.
std::string wrong_usage(std::vector<std::string> words);

/// Runs a command line. `words`: arguments without the program's name. Returns an ExitCode:
///   - Usage, before it connects, for an unknown verb or option, an empty word before "--", invalid
///     UTF-8, and words that CLI11 refuses;
///   - else the verb's result, or the code of its ServiceError;
///   - Failed instead of 0 if `out` could not be written, unless its reader is gone.
/// Writes errors as text to `err` and, with --json, as a document to `out`.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams);

}  // namespace vgpu::cli
