// SPDX-License-Identifier: MIT
//
// Progress on a terminal. ProgressLine redraws one line; its destructor erases the line. Spinner
// draws such a line from a separate thread during a call that blocks. Neither draws without a
// terminal or with --json.
#pragma once

#include "cli/verbs.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace vgpu::cli {

/// Where to draw progress, and whether to draw it.
struct ProgressOutput {
    ProgressOutput(const VerbContext& context);
    ProgressOutput(std::ostream& stream, bool is_enabled, std::size_t width)
        : out(stream), may_draw(is_enabled), columns(width) {}

    std::ostream& out;
    bool may_draw;        ///< false without a terminal and with --json
    std::size_t columns;  ///< of the terminal; the last column stays free for the cursor
};

/// A bar: "[##########          ]  50 %". `progress`: from 0 to 1.
std::string bar_text(double progress);

/// One line of progress. While a ProgressLine exists, nothing else may write to its stream.
class ProgressLine {
public:
    explicit ProgressLine(const ProgressOutput& output) : output_(output) {}
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// Draws `text`, cut to ProgressOutput::columns - 1 bytes.
    void draw(std::string_view text);

private:
    ProgressOutput output_;
    bool has_drawn_ = false;
};

/// Draws a line such as "| collect the report: 3 s" every `interval`. `what`: "collect the report".
/// While a Spinner exists, nothing else may write to its stream.
class Spinner {
public:
    static constexpr std::chrono::milliseconds kInterval{200};

    Spinner(const ProgressOutput& output, std::string what,
            std::chrono::milliseconds interval = kInterval);
    ~Spinner();
    Spinner(const Spinner&) = delete;
    Spinner& operator=(const Spinner&) = delete;

private:
    void run();
    void draw();

    const std::string what_;
    const std::chrono::milliseconds interval_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    ProgressLine line_;
    unsigned draws_ = 0;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool is_ended_ = false;
    std::optional<std::thread> thread_;
};

}  // namespace vgpu::cli
