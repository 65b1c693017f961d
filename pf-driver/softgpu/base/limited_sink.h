// SPDX-License-Identifier: MIT
//
// LimitedSink: a spdlog sink that forwards lines to another sink and limits their rate, because
// clients and guests could cause log lines without end (pf-driver/process/log_limit.h). The limit
// applies to level info and above. Debug and trace lines are not limited, because an operator has
// enabled them. main.cpp installs the sink; any thread may log.
#pragma once

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "pf-driver/process/log_limit.h"
#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu {

class LimitedSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    /// `clock` must outlive the sink.
    LimitedSink(spdlog::sink_ptr target, const Clock& clock)
        : target_(std::move(target)), clock_(clock) {}

protected:
    void sink_it_(const spdlog::details::log_msg& line) override {
        std::uint32_t left_out = 0;
        if (line.level >= spdlog::level::info && !admits(line, left_out)) return;
        if (left_out == 0) return target_->log(line);
        const std::string text =
            fmt::format("{} ({} more lines about this were left out)",
                        std::string_view(line.payload.data(), line.payload.size()), left_out);
        spdlog::details::log_msg whole = line;
        whole.payload = text;
        target_->log(whole);
    }
    void flush_() override { target_->flush(); }
    void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
        target_->set_formatter(std::move(formatter));
    }
    void set_pattern_(const std::string& pattern) override { target_->set_pattern(pattern); }

private:
    /// False if the line must be dropped. Else `left_out` is the number of lines about the same
    /// subject (log_limit.h) that were dropped since the last line about it was logged.
    bool admits(const spdlog::details::log_msg& line, std::uint32_t& left_out) {
        const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now());
        return vgpu_log_admit(&limit_, static_cast<std::uint64_t>(now.count()),
                              static_cast<std::uint32_t>(line.level), line.payload.data(),
                              line.payload.size(), &left_out);
    }

    spdlog::sink_ptr target_;
    const Clock& clock_;
    vgpu_log_limit limit_{};
};

}  // namespace vgpu::softgpu
