// SPDX-License-Identifier: MIT
#include "cli/progress.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

constexpr std::string_view kToLineStart = "\r\x1b[K";

}  // namespace

Canvas::Canvas(const Setting& setting)
    : Canvas(setting.out, setting.is_terminal && !setting.is_json, setting.columns) {}

std::string bar_text(double progress) {
    constexpr std::size_t kWidth = 20;
    const double part = std::clamp(progress, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(part * kWidth);
    return fmt::format("[{}{}] {:3.0f} %", std::string(full, '#'), std::string(kWidth - full, ' '),
                       part * 100);
}

ProgressLine::~ProgressLine() {
    if (is_dirty_) canvas_.out << kToLineStart << std::flush;
}

void ProgressLine::draw(std::string_view text) {
    if (!canvas_.is_drawn || canvas_.columns < 2) return;
    canvas_.out << kToLineStart << text.substr(0, canvas_.columns - 1) << std::flush;
    is_dirty_ = true;
}

Waiting::Waiting(const Canvas& canvas, std::string what, std::chrono::milliseconds pace)
    : what_(std::move(what)), pace_(pace), line_(canvas) {
    if (!canvas.is_drawn) return;
    draw();
    thread_.emplace([this] { go_on(); });
}

Waiting::~Waiting() {
    if (!thread_) return;
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    over_.notify_one();
    thread_->join();
}

void Waiting::go_on() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, pace_, [this] { return is_over_; })) draw();
}

void Waiting::draw() {
    constexpr std::string_view kHands = "|/-\\";
    const auto passed = std::chrono::steady_clock::now() - since_;
    line_.draw(fmt::format("{} {}: {} s", kHands[frames_++ % kHands.size()], what_,
                           std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
}

}  // namespace vgpu::cli
