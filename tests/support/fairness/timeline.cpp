// SPDX-License-Identifier: MIT
#include "tests/support/fairness/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace vgpu::test {
namespace {

/// kRight leaves room for half of the axis' last label.
constexpr double kWidth = 1200, kLeft = 170, kRight = 50, kTop = 60, kLane = 46, kBox = 30;
// colours that colour-blind readers can tell apart (Okabe and Ito)
constexpr std::array<const char*, 6> kColours{"#0072b2", "#e69f00", "#009e73",
                                              "#cc79a7", "#56b4e9", "#d55e00"};

class Picture {
public:
    explicit Picture(const Timeline& timeline) : timeline_(timeline) {
        if (!timeline.runs.empty()) first_ = last_ = timeline.runs.front().start_ns;
        for (const auto& run : timeline.runs) {
            first_ = std::min(first_, run.start_ns);
            last_ = std::max(last_, run.end_ns);
        }
        if (last_ <= first_) last_ = first_ + 1;
    }

    std::string draw() {
        const auto lanes = static_cast<double>(timeline_.lanes.size());
        const auto height = kTop + lanes * kLane + 50;
        add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" )"
            R"(font-family="sans-serif" font-size="13">)",
            kWidth, height);
        add(R"(<rect width="100%" height="100%" fill="white"/>)");
        add(R"(<text x="12" y="26" font-size="17">{}</text>)", timeline_.title);
        draw_axis(kTop + lanes * kLane);
        draw_lanes();
        draw_marks(kTop + lanes * kLane);
        add("</svg>");
        return text_;
    }

private:
    template <typename... T> void add(fmt::format_string<T...> format, T&&... values) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
        text_ += '\n';
    }

    [[nodiscard]] double x(std::int64_t time_ns) const {
        return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(time_ns - first_) /
                           static_cast<double>(last_ - first_);
    }

    void draw_axis(double bottom) {
        constexpr int kTicks = 10;
        for (int i = 0; i <= kTicks; ++i) {
            const auto time = first_ + (last_ - first_) * i / kTicks;
            add(R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2:.1f}" stroke="#ddd"/>)", x(time),
                kTop - 8, bottom);
            add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" fill="#555">{:.1f} ms</text>)",
                x(time), bottom + 18, static_cast<double>(time - first_) / 1e6);
        }
    }

    void draw_lanes() {
        double top = kTop;
        std::size_t index = 0;
        for (const auto& [vf, label] : timeline_.lanes) {
            add(R"(<text x="12" y="{:.1f}">{}</text>)", top + 20, label);
            for (const auto& run : timeline_.runs) {
                if (run.vf != vf) continue;
                add(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}" fill="{}"/>)",
                    x(run.start_ns), top, std::max(x(run.end_ns) - x(run.start_ns), 0.3), kBox,
                    kColours[index % kColours.size()]);
            }
            top += kLane;
            ++index;
        }
    }

    void draw_marks(double bottom) {
        for (const auto& mark : timeline_.marks) {
            add(R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2:.1f}" stroke="black" )"
                R"(stroke-dasharray="4 3"/>)",
                x(mark.time_ns), kTop - 12, bottom);
            const bool is_late = x(mark.time_ns) > kWidth / 2;
            add(R"(<text x="{:.1f}" y="{}" text-anchor="{}" font-size="11">{}</text>)",
                x(mark.time_ns) + (is_late ? -3 : 3), kTop - 14, is_late ? "end" : "start",
                mark.text);
        }
    }

    const Timeline& timeline_;
    std::string text_;
    std::int64_t first_ = 0;
    std::int64_t last_ = 0;
};

}  // namespace

std::string to_svg(const Timeline& timeline) {
    return Picture(timeline).draw();
}

}  // namespace vgpu::test
