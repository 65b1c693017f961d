// SPDX-License-Identifier: MIT
#include "daemon/service/views/notice_fold.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace vgpu::daemon {

namespace {

/// Kinds of notices that guests can cause, and a prefix of such kinds.
constexpr std::array<std::string_view, 5> kByGuests{"hang", "reset-done", "guard", "guest-error",
                                                    "taken-back"};
constexpr std::string_view kByAgents = "agent-";

bool is_by_guest(const Notice& notice) {
    const bool is_listed =
        std::find(kByGuests.begin(), kByGuests.end(), notice.kind) != kByGuests.end();
    return notice.vf != 0 && (is_listed || notice.kind.starts_with(kByAgents));
}

}  // namespace

bool NoticeFold::admits(const Notice& notice, Nanoseconds now) {
    if (!is_by_guest(notice)) return true;
    Window& window = windows_[{notice.gpu, notice.vf, notice.kind}];
    if (window.told == 0) window.end = now + kWindow;
    if (window.told < kTold) {
        ++window.told;
        return true;
    }
    ++window.folded;
    window.last = notice.text;
    return false;
}

std::vector<Notice> NoticeFold::take_due(Nanoseconds now) {
    std::vector<Notice> due;
    for (auto at = windows_.begin(); at != windows_.end();) {
        const auto& [gpu, vf, kind] = at->first;
        Window& window = at->second;
        if (now < window.end) {
            ++at;
            continue;
        }
        if (window.folded > 0)
            due.push_back({.gpu = gpu,
                           .vf = vf,
                           .kind = kind,
                           .text = fmt::format(
                               "{} (the last of {} more within {} s)", window.last, window.folded,
                               std::chrono::duration_cast<std::chrono::seconds>(kWindow).count())});
        at = windows_.erase(at);
    }
    return due;
}

std::optional<Nanoseconds> NoticeFold::next_due() const {
    std::optional<Nanoseconds> next;
    for (const auto& [key, window] : windows_)
        if (window.folded > 0 && (!next || window.end < *next)) next = window.end;
    return next;
}

}  // namespace vgpu::daemon
