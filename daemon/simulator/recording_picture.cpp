// SPDX-License-Identifier: MIT
#include "daemon/simulator/recording_export.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::simulator {

using daemon::Nanoseconds;
using daemon::trace::Annotated;
using daemon::trace::Event;
using daemon::trace::Ran;

namespace {

// Sizes in pixels: margins, the width of the time axis, the heights of a lane and of a bar.
constexpr double kLeft = 110, kWidth = 1080, kRight = 90, kLane = 26, kTop = 34, kBar = 18;

std::string escaped(const std::string& text) {
    std::string result;
    for (const char letter : text) {
        switch (letter) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            default:
                result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
        }
    }
    return result;
}

/// The picture: a lane for each VF, a time axis below, and a line for each annotation.
class Picture {
public:
    explicit Picture(const Recording& recording)
        : recording_(recording), figures_(figures_of(recording)), period_(figures_.period) {}

    std::string text() {
        std::string lanes;
        double top = kTop;
        for (const auto& [vf, figures] : figures_.vfs) {
            lanes += lane(vf, figures, top);
            top += kLane;
        }
        return fmt::format(
                   R"(<svg xmlns="http://www.w3.org/2000/svg" width="{:.0f}" height="{:.0f}" )"
                   R"(font-family="sans-serif" font-size="12">)"
                   "\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                   R"(<text x="8" y="18" font-size="14">{}: {:.1f} ms, {} VFs</text>)"
                   "\n",
                   kLeft + kWidth + kRight, top + kLane, escaped(recording_.gpu),
                   ms_of(period_.end - period_.begin), figures_.vfs.size()) +
               lanes + axis(top) + annotations(top) + "</svg>\n";
    }

private:
    [[nodiscard]] double x_of(Nanoseconds at) const {
        const double whole = std::max(1e-3, ms_of(period_.end - period_.begin));
        return kLeft + kWidth * ms_of(at - period_.begin) / whole;
    }

    /// The runs of a VF as bars. Runs that are closer than a fraction of a pixel become one bar.
    [[nodiscard]] std::string lane(std::uint32_t vf, const RecordedVf& figures, double top) const {
        constexpr double kHair = 0.25;
        std::string bars;
        double from = -1, to = -1;
        const auto draw = [&] {
            if (from >= 0)
                bars += fmt::format(
                    "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" "
                    "height=\"{:.0f}\"/>\n",
                    from, top, std::max(kHair, to - from), kBar);
        };
        for (const RecordedChunk& chunk : recording_.chunks)
            for (const Event& event : chunk.events) {
                const auto* ran = std::get_if<Ran>(&event);
                if (ran == nullptr || ran->vf != vf) continue;
                const double begin = x_of(begin_of(*ran));
                if (from < 0 || begin > to + kHair) {
                    draw();
                    from = begin;
                }
                to = std::max(to, x_of(ran->end));
            }
        draw();
        const double share = figures_.service_ns == 0
                                 ? 0
                                 : 100.0 * static_cast<double>(figures.service_ns) /
                                       static_cast<double>(figures_.service_ns);
        // neighbours get colours that are far apart on the colour wheel
        const int hue = static_cast<int>(vf * 137 % 360);
        return fmt::format(
            "<text x=\"8\" y=\"{:.0f}\">{}</text>\n<g fill=\"hsl({},60%,45%)\">\n{}</g>\n"
            "<text x=\"{:.0f}\" y=\"{:.0f}\">{:.1f} %</text>\n",
            top + kBar - 4, escaped(name_in(recording_, vf)), hue, bars, kLeft + kWidth + 8,
            top + kBar - 4, share);
    }

    [[nodiscard]] std::string axis(double top) const {
        constexpr int kTicks = 8;
        std::string text;
        const Nanoseconds whole = period_.end - period_.begin;
        for (int i = 0; i <= kTicks; ++i) {
            const Nanoseconds at = whole * i / kTicks;
            text += fmt::format(
                "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\" "
                "fill=\"#666\">{:.1f} ms</text>\n",
                x_of(period_.begin + at), top + kBar, ms_of(at));
        }
        return text;
    }

    /// A vertical line for each annotation, such as a reset, with the text as a tooltip.
    [[nodiscard]] std::string annotations(double top) const {
        std::string text;
        for (const RecordedChunk& chunk : recording_.chunks)
            for (const Event& event : chunk.events) {
                const auto* annotated = std::get_if<Annotated>(&event);
                if (annotated == nullptr) continue;
                text += fmt::format(
                    "<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.0f}\" "
                    "y2=\"{2:.0f}\" stroke=\"#c00\" stroke-dasharray=\"2 2\">"
                    "<title>{3}: {4}</title></line>\n",
                    x_of(annotated->at), kTop - 6, top, escaped(annotated->kind),
                    escaped(annotated->text));
            }
        return text;
    }

    const Recording& recording_;
    RecordedFigures figures_;
    Period period_;
};

}  // namespace

std::string svg_picture(const Recording& recording) {
    return Picture(recording).text();
}

}  // namespace vgpu::simulator
