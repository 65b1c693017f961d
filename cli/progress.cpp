// SPDX-License-Identifier: MIT
#include "cli/progress.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

constexpr std::string_view kToLineStart = "\r\x1b[K";

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
    if (is_dirty_) output_.out << kToLineStart << std::flush;
}

void ProgressLine::draw(std::string_view text) {
    if (!output_.is_drawn || output_.columns < 2) return;
    output_.out << kToLineStart << text.substr(0, output_.columns - 1) << std::flush;
    is_dirty_ = true;
}

Spinner::Spinner(const ProgressOutput& output, std::string what, std::chrono::milliseconds pace)
    : what_(std::move(what)), pace_(pace), line_(output) {
    if (!output.is_drawn) return;
    draw();
    thread_.emplace([this] { run(); });
}

Spinner::~Spinner() {
    if (!thread_) return;
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    over_.notify_one();
    thread_->join();
}

void Spinner::run() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, pace_, [this] { return is_over_; })) draw();
}

void Spinner::draw() {
    constexpr std::string_view kHands = "|/-\\";
    const auto passed = std::chrono::steady_clock::now() - since_;
    line_.draw(fmt::format("{} {}: {} s", kHands[frames_++ % kHands.size()], what_,
                           std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
}

}  // namespace vgpu::cli
