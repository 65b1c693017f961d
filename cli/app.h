// SPDX-License-Identifier: MIT
//
// run_cli(): runs one command line, for main.cpp and tests. Connects to the bus only for a verb
// that needs vgpud, through a function that tests can replace.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Generated texts for the build and the packages.
enum class Document { BashCompletion, ZshCompletion, ManualPage };

/// Connects to the bus of vgpud, as connect_service() does. `bus`: value of --bus. Throws
/// ServiceError if there is no such bus.
using Connect = std::function<std::unique_ptr<Service>(const std::string& bus)>;

/// `out` gets results and, if it is a terminal, progress. `err` gets warnings and errors as text.
/// With --json, `out` also gets errors, as JSON objects, so that one pipe carries results and
/// errors. Both streams must outlive the call of run_cli().
struct Streams {
    std::ostream& out;
    std::ostream& err;
    /// True if `out` is a terminal: verbs may then draw progress and clear the screen.
    bool is_terminal = false;
    bool uses_colour = false;        ///< true if `out` gets colours (may_use_colour())
    std::size_t columns = kColumns;  ///< width of the terminal; verbs use at most kColumns
};

/// Makes a document from the verbs and options of this build.
std::string make_document(Document document);

/// The error text for wrong usage; "" if `words` would run a verb, show help or print a Document.
std::string wrong_usage(std::vector<std::string> words);

/// Runs a command line. `words`: arguments without the program's name. Returns an ExitCode:
///   - Usage, without a connection, if the words do not parse (an unknown verb or option), if a
///     word is not UTF-8, or if, before "--", a word or an option's value after '=' is empty;
///   - Ok after help, the version or a Document;
///   - else the verb's result, or the code of the ServiceError that the verb threw.
/// Failed replaces Ok if `out` could not be written, unless the reader of standard output is gone.
/// Writes errors as text to `err` and, with --json, as a JSON object to `out`.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams);

}  // namespace vgpu::cli
