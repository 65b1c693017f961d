// SPDX-License-Identifier: MIT
#include "cli/progress.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

/// Moves the cursor to the start of the line and erases the line (ECMA-48).
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

ProgressOutput::ProgressOutput(const VerbContext& context)
    : ProgressOutput(context.out, context.is_terminal && !context.is_json, context.columns) {}

std::string bar_text(double progress) {
    constexpr std::size_t kWidth = 20;
    const double part = std::clamp(progress, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(part * kWidth);
    return fmt::format("[{}{}] {:3.0f} %", std::string(full, '#'), std::string(kWidth - full, ' '),
                       part * 100);
}

ProgressLine::~ProgressLine() {
    if (has_drawn_) output_.out << kClearLine << std::flush;
}

void ProgressLine::draw(std::string_view text) {
    if (!output_.may_draw || output_.columns < 2) return;
    output_.out << kClearLine << text.substr(0, output_.columns - 1) << std::flush;
    has_drawn_ = true;
}

Spinner::Spinner(const ProgressOutput& output, std::string what, std::chrono::milliseconds interval)
    : what_(std::move(what)), interval_(interval), line_(output) {
    if (!output.may_draw) return;
    draw();
    thread_.emplace([this] { run(); });
}

Spinner::~Spinner() {
    if (!thread_) return;
    {
        const std::lock_guard lock(mutex_);
        is_ended_ = true;
    }
    ended_.notify_one();
    thread_->join();
}

void Spinner::run() {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, interval_, [this] { return is_ended_; })) draw();
}

void Spinner::draw() {
    constexpr std::string_view kMarks = "|/-\\";
    const auto passed = std::chrono::steady_clock::now() - start_;
    line_.draw(fmt::format("{} {}: {} s", kMarks[draws_++ % kMarks.size()], what_,
                           std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
}

}  // namespace vgpu::cli
