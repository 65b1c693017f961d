// SPDX-License-Identifier: MIT
//
// Progress: what a terminal shows while vgpuctl waits. ProgressLine draws one line over itself and
// wipes it in the end; Waiting draws by itself, from a thread of its own, that a call goes on whose
// end nobody can foresee. Both draw nothing where nobody looks: no terminal, or --json.
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

/// Where and whether to draw.
struct Canvas {
    Canvas(const Invocation& invocation);
    Canvas(const Setting& setting);
    Canvas(std::ostream& stream, bool is_watched, std::size_t width)
        : out(stream), is_drawn(is_watched), columns(width) {}

    std::ostream& out;
    bool is_drawn;
    std::size_t columns;  ///< of the terminal; the last one stays free, for its cursor
};

/// "[##########          ]  50 %"; `progress` is a part of 1.
std::string bar_text(double progress);

/// Whoever draws has the stream for itself until the line is gone.
class ProgressLine {
public:
    explicit ProgressLine(const Canvas& canvas) : canvas_(canvas) {}
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    /// In place of what was drawn last, cut at the terminal's edge.
    void draw(std::string_view text);

private:
    Canvas canvas_;
    bool is_dirty_ = false;
};

/// "| destroy train: 3 s" for as long as it lives, at once and then anew every `pace`.
/// Nobody else may write to the stream meanwhile.
class Waiting {
public:
    static constexpr std::chrono::milliseconds kPace{200};

    Waiting(const Canvas& canvas, std::string what, std::chrono::milliseconds pace = kPace);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

private:
    void go_on();
    void draw();

    const std::string what_;
    const std::chrono::milliseconds pace_;
    const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    ProgressLine line_;
    unsigned turns_ = 0;
    std::mutex mutex_;
    std::condition_variable over_;
    bool is_over_ = false;
    std::optional<std::thread> thread_;
};

}  // namespace vgpu::cli
