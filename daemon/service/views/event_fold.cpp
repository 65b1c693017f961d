// SPDX-License-Identifier: MIT
#include "daemon/service/views/event_fold.h"

#include <fmt/format.h>
#include <utility>

namespace vgpu::daemon {

namespace {

bool is_caused_by_guest(const AdminEvent& admin_event) {
    return admin_event.vf != 0 && row_of(admin_event.kind).cause == EventCause::Guest;
}

}  // namespace

bool EventFold::admits(const AdminEvent& admin_event, Nanoseconds now) {
    if (!is_caused_by_guest(admin_event)) return true;
    Window& window = windows_[{admin_event.gpu, admin_event.vf, admin_event.kind}];
    if (window.reported == 0) window.end = now + kWindow;
    if (window.reported < kReported) {
        ++window.reported;
        return true;
    }
    ++window.folded;
    window.last_text = admin_event.text;
    return false;
}

std::vector<AdminEvent> EventFold::take_due(Nanoseconds now) {
    std::vector<AdminEvent> due;
    for (auto at = windows_.begin(); at != windows_.end();) {
        const auto& [gpu, vf, kind] = at->first;
        Window& window = at->second;
        if (now < window.end) {
            ++at;
            continue;
        }
        if (window.folded > 0)
            due.push_back(
                {.gpu = gpu,
                 .vf = vf,
                 .kind = kind,
                 .text = fmt::format(
                     "{} (the last of {} more within {} s)", window.last_text, window.folded,
                     std::chrono::duration_cast<std::chrono::seconds>(kWindow).count())});
        at = windows_.erase(at);
    }
    return due;
}

std::optional<Nanoseconds> EventFold::next_due() const {
    std::optional<Nanoseconds> next;
    for (const auto& [key, window] : windows_)
        if (window.folded > 0 && (!next || window.end < *next)) next = window.end;
    return next;
}

}  // namespace vgpu::daemon
